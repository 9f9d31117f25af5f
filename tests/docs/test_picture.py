"""README's picture is of the session that README has."""
import xml.etree.ElementTree as xml

import picture


def test_the_picture_is_the_one_of_readme():
    with open(picture.PATH, encoding="utf-8") as f:
        drawn = f.read()
    assert drawn == picture.draw(picture.session_of_readme()), \
        "write it anew: tests/docs/picture.py"
    assert xml.fromstring(drawn).tag.endswith("svg")
