"""LEGAL programs as WGSL: expressions and statements become lines here, a Jinja2 skeleton of the target places them."""
