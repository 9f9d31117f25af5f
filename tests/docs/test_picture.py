"""README's picture is of a session that goes as it shows."""
import xml.etree.ElementTree as xml

import picture

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    root = xml.fromstring(svg)
    assert root.tag == SVG + "svg"
    assert {"width", "height", "viewBox"} <= set(root.attrib)
    return ["".join(t.itertext()) for t in root.iter(SVG + "text")]


def test_a_real_session_goes_as_the_picture_shows(base, shell_env, tmp_path):
    session = picture.record(base, shell_env, tmp_path)
    assert picture.same(session) == picture.same(picture.session_of_readme())
    said = texts(picture.draw(session))
    assert any("kill -9" in line for line in said)
    assert said[-6:] == [f"line {i}" for i in range(1, 7)]


def test_the_picture_is_the_one_of_readme():
    with open(picture.PATH, encoding="utf-8") as f:
        assert f.read() == picture.draw(picture.session_of_readme()), \
            "write it anew: tests/docs/picture.py"


def test_any_text_makes_a_valid_picture():
    said = texts(picture.draw([("echo '<&>\"' \\\n  x", "<a>&amp;\n\n" +
                                "w" * 250 + "\n")]))
    assert said[:3] == ["$ echo '<&>\"' \\", "> x", "<a>&amp;"]
    assert "".join(said[4:]) == "w" * 250
    assert max(map(len, said)) <= picture.COLUMNS
