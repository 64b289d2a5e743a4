"""The settings file: where it is searched, and the errors of a bad one."""

from pathlib import Path

import pytest

from config.errors import ConfigError
from config.sections import Settings
from config.settings import load_settings
from tests.unit.config.refusals import refused

EXAMPLE = Path(__file__).parents[3] / "config" / "ringhaul.example.toml"


def test_the_file_is_found_here_then_in_the_users_folder(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = clean / "home/.config/ringhaul/ringhaul.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[cluster]\nport = 1\n")
    assert load_settings().config_file == own
    here = clean / "ringhaul.toml"
    here.write_text("[cluster]\nport = 2\n")
    assert load_settings().config_file == here
    named = clean / "named.toml"
    named.write_text("[cluster]\nport = 3\n")
    monkeypatch.setenv("RINGHAUL_CONFIG", "named.toml")
    assert load_settings().config_file == named
    given = clean / "given.toml"
    given.write_text("[cluster]\nport = 4\n")
    assert load_settings(config_file=Path("given.toml")).settings.cluster.port == 4


def test_a_file_that_is_named_must_exist(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert refused(file=Path("none.toml")) == (
        f"no such settings file: {clean / 'none.toml'} (named by --config)"
    )
    monkeypatch.setenv("RINGHAUL_CONFIG", "gone.toml")
    assert "gone.toml (named by RINGHAUL_CONFIG)" in refused()


def test_paths_start_from_the_file_or_the_current_folder(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / "etc").mkdir()
    file = clean / "etc" / "ringhaul.toml"
    file.write_text(
        'state_dir = "~/state"\n[cluster]\nuser = "u"\npassword_file = "secrets/password"\n'
    )
    monkeypatch.setenv("RINGHAUL_CACHE_DIR", "cache")
    settings = load_settings(config_file=file).settings
    assert settings.cluster.password_file == clean / "etc/secrets/password"
    assert settings.state_dir == clean / "home/state"
    assert settings.cache_dir == clean / "cache"


def test_the_example_lists_every_setting_with_its_default() -> None:
    loaded = load_settings(config_file=EXAMPLE)
    assert loaded.settings == Settings()
    from_user = {"state_dir", "cache_dir"}  # empty in the file: their defaults depend on the user
    assert {k for k, origin in loaded.origins.items() if origin == "default"} == from_user
    assert all(f'\n{key} = ""\n' in EXAMPLE.read_text() for key in from_user)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[cluster]\nprot = 1\n", "FILE, line 2: there is no setting cluster.prot; did you mean"
         " cluster.port?"),
        ("[clutser]\nport = 1\n", "FILE, line 1: there is no setting clutser; did you mean"
         " cluster?"),
        ("statedir = 'x'\n", "FILE, line 1: there is no setting statedir; did you mean state_dir?"),
        ("[Cluster]\nport = 1\n", "FILE, line 1: there is no setting Cluster; did you mean"
         " cluster?"),
        ("[load]\nconsistency = 'ONE'\n", "FILE, line 2: there is no setting load.consistency; did"
         " you mean cluster.consistency?"),
        ("[load]\n\nfrobnicate = 1\n", "FILE, line 3: there is no setting load.frobnicate"),
        ("cluster = 5\n", "FILE: cluster is a section, expected [cluster] and its settings"),
        ("[cluster]\nport = \n", "FILE is not valid TOML: Invalid value (at line 2, column 8)"),
        ("[cluster]\nport = 'x'\n", 'cluster.port = "x" (file FILE, line 2): expected a whole'
         " number"),
        ("[cluster]\nport = true\n", "cluster.port = True (file FILE, line 2): expected a number"),
        ("[cluster]\ntls = 'on and on'\n", 'cluster.tls = "on and on" (file FILE, line 2): expected'
         " true or false"),
    ],
)  # fmt: skip
def test_a_fault_in_a_file_is_reported_with_its_place(clean: Path, text: str, message: str) -> None:
    file = clean / "ringhaul.toml"
    file.write_text(text)
    assert refused() == message.replace("FILE", str(file))


def test_a_value_in_place_of_a_section_is_reported_even_under_a_variable(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (clean / "ringhaul.toml").write_text("cluster = 5\n")
    monkeypatch.setenv("RINGHAUL_CLUSTER_PORT", "1")
    assert refused().endswith("cluster is a section, expected [cluster] and its settings")


def test_a_section_may_be_empty(clean: Path) -> None:
    (clean / "ringhaul.toml").write_text("[cluster]\n# port = 9042\n[broker]\n")
    assert load_settings().settings == Settings()


def test_a_file_may_begin_with_a_byte_order_mark(clean: Path) -> None:
    (clean / "ringhaul.toml").write_bytes(b"\xef\xbb\xbf[cluster]\r\nport = 9043\r\n")
    loaded = load_settings()
    assert loaded.settings.cluster.port == 9043
    assert loaded.origins["cluster.port"] == f"file {clean / 'ringhaul.toml'}"


def test_a_binary_or_unreadable_file_is_refused(clean: Path) -> None:
    file = clean / "ringhaul.toml"
    file.write_bytes(b"\xff\xfe")
    assert refused() == f"{file} is not UTF-8 text (byte 0)"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "nested hundreds deep"),
        ("x = " + "{a = " * 2000 + "1" + "}" * 2000, "nested hundreds deep"),
        ("[cluster]\nport = " + "9" * 6000, "line 2: a number has thousands of digits"),
        ("[cluster]\nport = 0x" + "f" * 9000, "a number has thousands of digits"),
        ("[cluster]\nport = '" + "9" * 9000 + "'", "line 2"),
    ],
    ids=["arrays", "tables", "digits", "hexadecimal", "text"],
)
def test_traps_in_a_file_are_reported_in_a_short_line(clean: Path, text: str, message: str) -> None:
    file = clean / "trap.toml"
    file.write_text(text)
    words = refused(file=file)
    assert message in words
    assert len(words) < 600
    assert "\n" not in words


def test_a_setting_of_a_later_version_is_left_out_where_that_is_wanted(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = clean / "ringhaul.toml"
    file.write_text(
        '[cluster]\nport = 1\nquantum = "x"\n[warehouse]\nplace = 1\ndepth = 2\n'
        "[load]\nblock_bytes = '2MiB'\n"
    )
    monkeypatch.setenv("RINGHAUL_WAREHOUSE_XYZZY", "1")
    assert "cluster.quantum" in refused() or "RINGHAUL_WAREHOUSE_XYZZY" in refused()
    left_out: list[str] = []
    settings = load_settings(leave_out=left_out.append).settings
    assert (settings.cluster.port, settings.load.block_bytes) == (1, 2 << 20)
    end = "; it is ignored: a later version may know it"
    assert sorted(left_out) == sorted(
        [
            f"the environment variable RINGHAUL_WAREHOUSE_XYZZY is not a setting of ringhaul{end}",
            f"{file}, line 3: there is no setting cluster.quantum{end}",
            f"{file}, line 5: there is no setting warehouse.place{end}",
            f"{file}, line 6: there is no setting warehouse.depth{end}",
        ]
    )


@pytest.mark.parametrize(
    "text",
    [
        "[storage]\nallowed_root = ['/x']\n",
        "[clutser]\nport = 1\n",
        "statedir = 'x'\n",
        "[cluster]\nprot = 1\n",
    ],
)
def test_a_slip_in_writing_a_setting_is_an_error_also_there(clean: Path, text: str) -> None:
    """Left out, a limit such as `storage.allowed_roots` would not hold."""
    (clean / "ringhaul.toml").write_text(text)
    with pytest.raises(ConfigError, match="did you mean"):
        load_settings(leave_out=lambda text: None)


def test_a_slip_in_a_variable_is_an_error_also_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RINGHAUL_STORAGE_ALLOWED_ROOT", "/x")
    with pytest.raises(ConfigError, match="did you mean RINGHAUL_STORAGE_ALLOWED_ROOTS"):
        load_settings(leave_out=lambda text: None)
