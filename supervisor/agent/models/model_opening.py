"""Opening a model as it is configured, and learning what its server holds.

Rule: nobody waits for what a server may tell of its limits; one that does not is as if it had not been asked.
"""

from functools import partial

import trio

from supervisor.agent.models.model import Model
from supervisor.agent.models.model_facts import model_facts
from supervisor.agent.models.providers import open_model, own_providers
from supervisor.agent.models.server_limits import NOTHING_LEARNED, LearningModel
from supervisor.agent.models.server_listing import server_listings
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


async def learn_limits(model: Model, settings: Settings) -> None:
    """Ask the server of one of the operator's own providers what it holds of a model, unless that is known by now."""
    row = next((row for row in own_providers(settings) if row.answers_to(model.name)), None)
    if row is None or not isinstance(model, LearningModel) or model.learned != NOTHING_LEARNED:
        return
    asked = partial(server_listings, [row], settings)
    listings = await trio.to_thread.run_sync(asked, abandon_on_cancel=True)
    listing = listings.get(row.label)
    if listing is not None and model.learned == NOTHING_LEARNED:
        model.learned = listing.models.get(model.name.removeprefix(row.prefix), NOTHING_LEARNED)
