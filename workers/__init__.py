"""The hands: tools in confined processes. Nothing here imports supervisor, trio or anthropic."""
