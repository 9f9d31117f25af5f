"""What a command is given: user, environment, directory, descriptors."""
import os
import uuid

import pytest

import wire
from wire import Command, python, shell


def status_of(run):
    lines = run.output().decode().splitlines()
    return {k: v.split() for k, v in (li.split(":", 1) for li in lines)}


def env_of(run, command=0):
    return dict(v.split("=", 1) for v in
                run.output(command=command).decode().split("\0") if v)


def test_the_sandbox_user_is_1000_with_nothing_else(host):
    s = status_of(host.run(Command(["cat", "/proc/self/status"])))
    assert s["Uid"] == s["Gid"] == ["1000"] * 4
    assert s["Groups"] == []
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(s[name][0], 16) == 0, name
    assert s["NoNewPrivs"] == ["1"]


def test_root_keeps_its_capabilities_less_kill_and_setpcap(host):
    s = status_of(host.run(Command(["cat", "/proc/self/status"]),
                           user=wire.ROOT))
    assert s["Uid"] == s["Gid"] == ["0"] * 4
    assert s["Groups"] == []
    chown, dac_override, fowner, setgid, setuid = (
        1 << 0, 1 << 1, 1 << 3, 1 << 6, 1 << 7)
    want = chown | dac_override | fowner | setgid | setuid
    assert int(s["CapEff"][0], 16) == want
    assert int(s["CapPrm"][0], 16) == want
    assert int(s["CapBnd"][0], 16) == 0
    assert int(s["CapAmb"][0], 16) == 0
    assert s["NoNewPrivs"] == ["1"]


def test_root_can_do_root_things(host):
    run = host.run(shell("chown 1000:1000 /root && stat -c %u /root"),
                   user=wire.ROOT)
    assert run.output() == b"1000\n"


def test_signals_start_as_they_should(host):
    s = status_of(host.run(Command(["cat", "/proc/self/status"])))
    for name in ("SigBlk", "SigIgn", "SigPnd", "ShdPnd"):
        assert int(s[name][0], 16) == 0, name


def test_no_descriptor_is_inherited_but_the_three(host):
    run = host.run(python("import os; print(sorted(map(int,"
                          " os.listdir('/proc/self/fd'))))"))
    assert run.output() == b"[0, 1, 2, 3]\n"  # 3 is the listing itself


def test_each_command_has_its_own_session(host):
    run = host.run(python("import os; print(os.getsid(0) == os.getpid(),"
                          " os.getpgrp() == os.getpid())"))
    assert run.output() == b"True True\n"


def test_no_core_is_dumped(host):
    run = host.run(python("import resource as r;"
                          " print(r.getrlimit(r.RLIMIT_CORE))"))
    assert run.output() == b"(0, 0)\n"


def test_the_base_environment_of_the_sandbox_user(host):
    env = env_of(host.run(Command(["env", "-0"], cwd="/tmp")))
    assert env == {"PATH": os.environ["PATH"], "HOME": "/workspace",
                   "USER": "sandbox", "LOGNAME": "sandbox",
                   "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1",
                   "PWD": "/tmp"}


def test_the_base_environment_of_root(host):
    env = env_of(host.run(Command(["env", "-0"]), user=wire.ROOT))
    assert (env["HOME"], env["USER"], env["LOGNAME"]) == (
        "/root", "root", "root")


def test_home_is_the_users_own_where_there_is_one(host):
    host.run(shell("mkdir -p /home/sandbox"), user=wire.ROOT)
    env = env_of(host.run(Command(["env", "-0"])))
    assert env["HOME"] == "/home/sandbox"


def test_the_commands_environment_replaces_the_base(host):
    env = env_of(host.run(Command(
        ["/usr/bin/env", "-0"],
        env=["LANG=C", "NEW=a=b", "EMPTY=", "PATH=/x", "UTF=\u20ac"])))
    assert (env["LANG"], env["NEW"], env["EMPTY"], env["PATH"],
            env["UTF"]) == ("C", "a=b", "", "/x", "\u20ac")
    assert env["HOME"] == "/workspace"


@pytest.mark.parametrize("user", [wire.SANDBOX, wire.ROOT])
def test_the_images_environment_is_a_commands_base(make_sandbox, user):
    sandbox = make_sandbox(env={
        "FROM_IMAGE": "a b", "PYTHONPATH": "/opt/lib", "HOME": "/app",
        "LANG": "C", "PYTHONUNBUFFERED": "", "USER": "image", "OURS": "image"})
    want = {"FROM_IMAGE": "a b", "PYTHONPATH": "/opt/lib", "HOME": "/app",
            "LANG": "C", "PYTHONUNBUFFERED": "", "OURS": "call",
            "USER": "root" if user == wire.ROOT else "sandbox",
            "PATH": os.environ["PATH"]}
    try:
        run = sandbox.host.run([Command(["env", "-0"], env=["OURS=call"]),
                                shell("env -0", env=["OURS=call"])],
                               user=user)
        for i in range(2):
            env = env_of(run, i)
            names = set(want) - ({"PATH"} if i == 1 else set())
            assert {n: env.get(n) for n in names} == {
                n: want[n] for n in names}
    finally:
        sandbox.close()


def test_an_engines_home_for_root_is_not_the_sandbox_users(make_sandbox):
    sandbox = make_sandbox(env={"HOME": "/root"})
    env = env_of(sandbox.host.run(Command(["env", "-0"])))
    assert env["HOME"] == "/workspace"


def test_what_python_printed_before_it_was_killed_is_there(host):
    run = host.run(Command(
        ["python3", "-c", "print('a')\nwhile True: pass"], timeout_ms=2000))
    assert run.output() == b"a\n"
    assert run.end().reason == "timeout"


def test_python_and_its_children_print_in_their_order(host):
    text = ("import os, sys, subprocess\n"
            "print('a')\nsubprocess.run(['echo', 'b'])\n"
            "print('c', file=sys.stderr)\nprint('e')\nos._exit(0)\n")
    run = host.run(Command(["python3", "-c", text],
                           flags=wire.MERGE_STDERR))
    assert run.output() == b"a\nb\nc\ne\n"


def test_the_program_is_looked_up_in_the_commands_path(host):
    host.run(shell("mkdir bin; printf '#!/bin/sh\\necho mine\\n' > bin/ls;"
                   " chmod 755 bin/ls"))
    run = host.run(Command(["ls"], env=["PATH=/workspace/bin:/bin"]))
    assert run.output() == b"mine\n"


def test_shell_text_finds_what_the_images_path_says(make_sandbox):
    path = "/workspace/it's/bin:" + os.environ["PATH"]
    sandbox = make_sandbox(env={"PATH": path})
    run = sandbox.host.run(shell(
        "cd /workspace; mkdir -p \"it's/bin\";"
        " printf '#!/bin/sh\\necho mine\\n' > \"it's/bin/ls\";"
        " chmod 755 \"it's/bin/ls\"; ls; echo $PATH"))
    mine, shown = run.output().decode().splitlines()
    assert mine == "mine"
    # Behind it stands what /etc/profile made of PATH.
    assert shown.startswith(path + ":/usr/local/")


def test_shell_text_has_the_calls_path_and_no_other(host):
    run = host.run(shell("echo $PATH", env=["PATH=/workspace/bin:/bin"]))
    assert run.output() == b"/workspace/bin:/bin\n"


def test_shell_text_is_passed_as_it_is_where_no_path_was_said(make_sandbox):
    usual = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    sandbox = make_sandbox(env={"PATH": usual})
    run = sandbox.host.run(shell("echo $BASH_EXECUTION_STRING"))
    assert run.output() == b"echo $BASH_EXECUTION_STRING\n"


def test_lines_of_shell_text_count_from_its_first(host):
    run = host.run(shell("\n\nnowhere", env=["PATH=/bin"]))
    assert b"line 3: nowhere" in run.output(wire.STDERR)


def test_a_shell_text_as_long_as_exec_takes_is_run(host):
    text = "echo ${#BASH_EXECUTION_STRING} #"
    run = host.run(shell(text.ljust(131071, "x"), env=["PATH=/bin"]))
    assert run.output() == b"131071\n"


def test_a_relative_program_is_looked_up_from_cwd(host):
    host.run(shell("printf '#!/bin/sh\\npwd\\n' > p; chmod 755 p"))
    assert host.run(Command(["./p"])).output() == b"/workspace\n"


def test_cwd_is_entered(host):
    host.run(shell("mkdir -p 'a b'"))
    run = host.run(Command(["pwd"], cwd="/workspace/a b"))
    assert run.output() == b"/workspace/a b\n"


def test_arguments_arrive_byte_for_byte(host):
    args = ["", " ", "a'b\"c$d`e\\", "\u20ac\n", "-x", "*"]
    run = host.run(Command(["printf", "<%s>"] + args))
    assert run.output() == b"".join(b"<%s>" % a.encode() for a in args)


def test_shell_text_is_run_by_a_login_bash(host):
    run = host.run(shell("shopt -q login_shell && echo ${BASH_VERSION%%.*};"
                         " a=(x y); echo ${a[1]}"))
    assert run.output().splitlines()[1:] == [b"y"]
    assert int(run.output().splitlines()[0]) >= 4


def test_shell_text_that_looks_like_an_option_is_text(host):
    for text in ("-x", "+x", "--"):
        run = host.run(shell(text))
        assert run.end().exit_code == 127, text
        assert f"{text}: command not found".encode() in run.output(
            wire.STDERR)


def test_where_there_is_no_bash_shell_text_is_run_by_sh(make_sandbox):
    host = make_sandbox(hidden="/usr/bin/bash").host
    run = host.run(shell("echo $0 ${BASH_VERSION:-none}"))
    assert (run.output(), run.end().exit_code) == (b"sh none\n", 0)
    for text in ("-x", "+x"):  # nor does that take an option for text
        run = host.run(shell(text))
        assert run.end().exit_code == 127, text
        assert f"{text}: not found".encode() in run.output(wire.STDERR)


def test_output_can_be_opened_by_name(host):
    run = host.run(shell("echo a > /dev/stdout; echo b > /dev/stderr"))
    assert run.output() == b"a\n" and run.output(wire.STDERR) == b"b\n"


TRY = ("import os\n" "for pid in (1, os.getppid()):\n"
       "    for what in (%s):\n" "        try: what(); print('could')\n"
       "        except PermissionError: print('no')\n")


@pytest.mark.parametrize("user, tries", [
    (wire.SANDBOX, ("lambda: os.kill(pid, 9)",
                    "lambda: open(f'/proc/{pid}/mem', 'rb')",
                    "lambda: open(f'/proc/{pid}/environ', 'rb')",
                    "lambda: os.listdir(f'/proc/{pid}/fd')")),
    (wire.ROOT, ("lambda: open(f'/proc/{pid}/mem', 'rb')",
                 "lambda: os.readlink(f'/proc/{pid}/fd/3')",
                 "lambda: os.open(f'/proc/{pid}/fd/3', 1)"))])
def test_nobody_can_look_into_the_agent_or_a_keeper(host, user, tries):
    run = host.run(python(TRY % ", ".join(tries)), user=user)
    assert run.output() == b"no\n" * 2 * len(tries)


def test_commands_go_to_the_oom_killer_before_the_agent(host):
    run = host.run(Command(["cat", "/proc/self/oom_score_adj"]))
    assert int(run.output()) >= 500


def test_the_files_of_a_run_are_there_and_then_gone(host):
    key = uuid.uuid4()
    run = host.run(
        shell(f"d=/tmp/.run-{key}; stat -c '%a %u %n' $d $d/*; cat $d/in;"
              " $d/tool; ln -s /etc/passwd $d/l; mkdir -p $d/x/y/z;"
              " touch $d/x/y/z/f; ln -s / $d/x/root"),
        key=key,
        files=[("in", 0o600, b"\x00data\n"),
               ("tool", 0o700, b"#!/bin/sh\necho tool\n")])
    d = f"/tmp/.run-{key}"
    assert run.output() == (
        f"700 1000 {d}\n600 1000 {d}/in\n700 1000 {d}/tool\n".encode()
        + b"\x00data\ntool\n")
    assert run.end().exit_code == 0
    assert host.run(Command(["ls", "-A", "/tmp"])).output() == b""


def test_files_for_root_belong_to_root(host):
    key = uuid.uuid4()
    run = host.run(shell(f"stat -c %u /tmp/.run-{key} /tmp/.run-{key}/f"),
                   key=key, user=wire.ROOT, files=[("f", 0o600, b"")])
    assert run.output() == b"0\n0\n"


def test_a_run_leaves_no_files_whatever_it_put_there(host):
    key = uuid.uuid4()
    run = host.run(
        shell(f"cd /tmp/.run-{key}; for i in $(seq 20); do mkdir d$i;"
              " (cd d$i; seq -f %05g 300 | xargs touch; chmod 0 .); done;"
              " mkfifo fifo; chmod 0 .; exit 3"),
        key=key, files=[("f", 0o600, b"x")])
    assert run.end().exit_code == 3
    assert host.run(Command(["ls", "-A", "/tmp"])).output() == b""


def test_a_tree_too_deep_is_given_up_and_the_run_still_ends(host):
    key = uuid.uuid4()
    run = host.run(
        python(f"import os; os.chdir('/tmp/.run-{key}')\n"
               "for i in range(500): os.mkdir('d'); os.chdir('d')\n"),
        key=key, files=[("f", 0o600, b"x")])
    assert run.end().exit_code == 0 and run.run_end.reason == "exit"


def test_when_the_files_cannot_be_written_the_run_says_so(host):
    key = uuid.uuid4()
    host.run(shell(f"mkdir /tmp/.run-{key}"))
    run = host.run([Command(["true"]), Command(["true"])], key=key,
                   files=[("f", 0o600, b"")])
    end = run.end()
    assert end.reason == "start_failed"
    assert end.text.startswith(f"mkdir /tmp/.run-{key}: ")
    assert run.commands_ended == 1 and run.run_end.failed
