"""What a mirror of a registry stands for, and what package managers are told of it."""

import json

import pytest

from supervisor.categories.registries import RegistriesConfig, told
from tests.each_row import each_row

MIRRORS = RegistriesConfig(go="http://10.0.0.1:8080/go/", pypi="https://pypi.corp.example/simple")


def test_only_the_place_that_the_operator_named_may_be_at_a_private_address() -> None:
    mirror, preset = MIRRORS.registry("go"), MIRRORS.registry("npm")
    assert (mirror.places, mirror.named) == (("10.0.0.1:8080", "sum.golang.org:443"), ("10.0.0.1:8080",))
    assert (len(preset.places), preset.named) == (2, ())


def test_certificates_count_but_for_a_mirror_that_is_written_with_plain_http() -> None:
    def variables(url: str) -> set[str]:
        return {*told([RegistriesConfig(pypi=url).registry("pypi")])[0]}

    plain = variables("http://pypi.corp.example/simple") - variables("https://pypi.corp.example/simple")
    assert plain == {"PIP_TRUSTED_HOST", "UV_INSECURE_HOST"}


@pytest.mark.parametrize(
    ("written", "url", "place"),
    [
        ("HTTP://Crates.Corp.example/Index/", "http://crates.corp.example/Index", "crates.corp.example:80"),
        ("sparse+https://a.example:8443/a/b/", "https://a.example:8443/a/b", "a.example:8443"),
        ("https://10.0.0.1", "https://10.0.0.1", "10.0.0.1:443"),
    ],
)
def test_a_mirror_is_used_in_normal_form_under_either_name(written: str, url: str, place: str) -> None:
    for config in (RegistriesConfig(cargo=written), RegistriesConfig(crates=written)):
        assert config.registry("crates") == ("crates", (place,), url)


@each_row(
    ("url", "why"),
    [
        ("https://me:swordfish@npm.example", "a caching one on it that logs in by itself"),
        ("https://npm.example/?token=swordfish", "more than a host, a port and a path"),
        ("ftp://npm.example", "the scheme 'ftp'"),
        ("https://[::1]/", "use the host's name"),
        ("https://npm.example:0/", "The port '0'"),
        ("npm.example", "no scheme"),
        ("https://", "names no host"),
        ("https://npm.example/$(id)", "more than a host, a port and a path"),
    ],
)
def test_a_mirror_that_cannot_be_one_is_refused_with_what_to_do_and_no_password(url: str, why: str) -> None:
    with pytest.raises(ValueError, match="the URL of `npm`") as refused:
        RegistriesConfig(npm=url)
    assert why in str(refused.value)
    assert "swordfish" not in str(refused.value)


def test_a_registry_has_one_mirror() -> None:
    with pytest.raises(ValueError, match="`pypi` and `pip` name the same registry"):
        RegistriesConfig(pypi="https://a.example", pip="https://b.example")


def test_go_is_told_of_a_mirror_on_this_machine_so_that_it_takes_the_proxy() -> None:
    for host, told_host in (("127.0.0.1", "127.0.0.1."), ("localhost", "localhost."), ("go.example", "go.example")):
        registry = RegistriesConfig(go=f"http://{host}:3000/x").registry("go")
        assert told([registry])[0] == {"GOPROXY": f"http://{told_host}:3000/x"}
        assert registry.places[0] == f"{host}:3000"


def test_files_tell_bundler_and_composer_of_their_mirrors() -> None:
    mirrors = RegistriesConfig(rubygems="https://gems.example", packagist="http://php.example/all")
    variables, files = told([mirrors.registry("rubygems"), mirrors.registry("packagist")])
    assert not variables
    assert 'RUBYGEMS__ORG/: "https://gems.example/"' in files[".bundle/config"]
    assert json.loads(files[".composer/config.json"]) == {
        "repositories": [{"type": "composer", "url": "http://php.example/all"}, {"packagist.org": False}],
        "config": {"secure-http": False},
    }
