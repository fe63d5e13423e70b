"""Opening a model as it is configured: with tools of its own, or with tools in its text."""

from supervisor.agent.models.model import Model
from supervisor.agent.models.model_facts import model_facts
from supervisor.agent.models.providers import open_model
from supervisor.config.settings import Settings


def opened_model(name: str | None, settings: Settings) -> Model:
    """Return the model called `name`; by default the configured one, else the default of all.

    Raises:
        ConfigError: it cannot be used.
    """
    model = open_model(name, settings)
    if model_facts(model.name, settings).tools == "native":
        return model
    from supervisor.agent.models.text_tools import TextToolsModel

    return TextToolsModel(model)
