"""How the site is built: `make docs`, or `sphinx-build -W --keep-going -n docs build/site`."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE), str(ROOT / "src")]
os.environ.setdefault("MPLBACKEND", "Agg")

from leastaction.version import __version__  # noqa: E402

project = "leastaction"
author = "the leastaction developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "sphinx_design",
    "sphinx_copybutton",
    "matplotlib.sphinxext.plot_directive",
    "_extensions.generated",  # tables, catalogue, reference and the moving picture: from code
    "_extensions.mathml",  # equations without a script, so without a network
    "_extensions.names",  # `la.integrate` in a docstring becomes a link
]
exclude_patterns = ["_extensions", "figures/*.py"]
nitpicky = True
smartquotes = False  # quotes are Python's
suppress_warnings = ["config.cache"]  # the gallery's settings hold functions

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 3

# Docstrings: NumPy's convention. Types stand in the text of a parameter, so the signature stays short.
default_role = "name"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
add_module_names = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

copybutton_prompt_text = r">>> |\.\.\. "
copybutton_prompt_is_regexp = True

# Pictures of pages, drawn when the site is built.
plot_formats = [("png", 130)]
plot_html_show_formats = plot_html_show_source_link = False

# The gallery: scripts of gallery/, run in turn.
if any((ROOT / "gallery").glob("*.py")):
    extensions.append("sphinx_gallery.gen_gallery")
    sphinx_gallery_conf = {
        "examples_dirs": "../gallery",
        "gallery_dirs": "gallery",
        "filename_pattern": r"\.py$",
        "plot_gallery": os.environ.get("GALLERY") != "off",  # off: pages without running the scripts
        "ignore_pattern": r"(^|/)_",
        "within_subsection_order": "FileNameSortKey",
        "abort_on_example_error": True,
        "remove_config_comments": True,
        "show_memory": False,
        "min_reported_time": 1e9,
        "write_computation_times": False,
        "matplotlib_animations": True,
        "default_thumb_file": str(HERE / "_static" / "logo.svg"),
    }

html_theme = "pydata_sphinx_theme"
html_title = "leastaction"
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_math_renderer = "mathml"
html_copy_source = html_show_sourcelink = False
html_show_copyright = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "changelog": []}
html_theme_options = {
    "logo": {"text": "leastaction"},
    "show_prev_next": True,
    "navbar_align": "left",
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["sphinx-version"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
