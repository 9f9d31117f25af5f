"""The files that people copy for a server in a container."""
import os
import re

import pytest

from pages import TOP, read


def settings():
    """{key: default} of schema/config.txt"""
    lines = [n.split("|") for n in read("schema/config.txt").splitlines()
             if n and not n.startswith("#")]
    return {n[0]: n[2] for n in lines}


def image():
    """Lines of the server's image's Dockerfile, behind FROM scratch."""
    return read("images/server/Dockerfile").split(
        "FROM scratch\n")[1].splitlines()


def image_env():
    return dict(n.removeprefix("ENV ").split("=", 1)
                for n in image() if n.startswith("ENV "))


def test_each_line_of_the_example_is_a_setting_with_its_default():
    known = {**settings(), **image_env()}
    for line in read(".env.example").splitlines():
        if re.match(r"#?[A-Z_]+=", line):
            assert line.startswith("#")
            key, _, value = line[1:].partition("=")
            assert (key, known[key]) == (key, value)


def test_the_example_names_what_the_image_sets():
    named = re.findall(r"^#([A-Z_]+)=", read(".env.example"), re.M)
    assert len(named) == len(set(named))
    assert set(image_env()) - set(named) == {"PATH"}


def test_the_image_sets_what_is_a_setting():
    assert set(image_env()) - set(settings()) == {"PATH"}


def test_the_image_is_built_with_bootstraps_packages():
    wanted = re.search(r"packages_build=\((.*?)\)", read("bootstrap"), re.S)
    text = read("images/server/Dockerfile")
    given = re.search(r"--no-install-recommends(.*?)&&", text, re.S)
    assert set(given[1].replace("\\", "").split()) == \
        set(wanted[1].split()) | {"ca-certificates"}


def test_the_image_has_the_version_of_the_programs():
    version = re.search(r"AC_INIT\(\[mcp-sandboxd\], \[(.*?)\]",
                        read("configure.ac"))[1]
    assert f"LABEL org.opencontainers.image.version={version}" in image()


def test_each_instruction_of_the_image_is_a_line_of_its_own():
    """images/server/build reads them by line."""
    words = ("ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "LABEL", "ENTRYPOINT",
             "COPY", "#")
    assert [n for n in image() if n.split()[0] not in words] == []
    assert not any(n.endswith("\\") for n in image())


@pytest.mark.parametrize("which", ["socket", "dind"])
def test_compose_files_set_what_is_a_setting(which):
    known = set(settings()) | {"DOCKER_TLS_CERTDIR"}
    path = os.path.join(TOP, "deploy/compose", which, "compose.yaml")
    with open(path, encoding="utf-8") as f:
        found = re.findall(r"^      ([A-Z_]+):", f.read(), re.M)
    assert set(found) <= known
