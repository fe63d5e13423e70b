"""What a mirror of a registry stands for, and what package managers are told of it."""

from supervisor.categories.registries import RegistriesConfig, told

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
