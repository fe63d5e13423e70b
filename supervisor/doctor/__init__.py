"""`strongroom doctor`: every protection and dependency, tried for real."""
