"""How the site is built: `make docs`. Nothing is fetched, and warnings are errors."""

from __future__ import annotations

import sys
from pathlib import Path

from polyfid import __version__

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "polyfid"
author = "The polyfid developers"
copyright = f"{author}; BSD-3-Clause"
release = version = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "mathml",  # formulae are part of the pages: no script, no fonts
    "names",  # `names` in docstrings become links where there is a page
    "own_members",  # methods of scikit-learn's base classes are described there
    "root_pages",  # CHANGELOG.md and others that live in the root of the repository
]
exclude_patterns = ["_build", "reproduction", "*/GALLERY_HEADER.rst"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    ("py:obj", ".*"),  # names in docstrings: a link where there is a page, else a word
    ("py:.*", r"(?!polyfid\.).*"),  # types of other libraries have no page here
    ("py:.*", r"polyfid\..*\..*"),  # nor have types inside the package
]
suppress_warnings = ["ref.python", "config.cache"]  # a name of several things links to the first

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

autosummary_generate = True
autosummary_imported_members = True
autodoc_member_order = "groupwise"
autodoc_typehints_format = "short"
autodoc_type_aliases = {"Array": "Array", "Indices": "Indices"}
toc_object_entries_show_parents = "hide"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
numpydoc_show_class_members = False
numpydoc_use_plots = False
default_role = "name"

html_theme = "pydata_sphinx_theme"
html_title = "polyfid"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options = {
    "logo": {"text": "polyfid"},
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "friendly",
    "pygments_dark_style": "monokai",
}
html_context = {"default_mode": "auto"}  # light or dark, as the reader prefers
html_sidebars = {"index": [], "changelog": [], "getting_started": []}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery", "../examples/tutorials"],
    "gallery_dirs": ["gallery", "tutorials"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.by_reading",
    "backreferences_dir": "api/generated/backreferences",
    "doc_module": ("polyfid",),
    "reference_url": {"polyfid": None},
    "reset_modules": ("gallery_order.reset",),
    "capture_repr": (),
    "image_srcset": ["2x"],
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,  # that page loads scripts from elsewhere
    "abort_on_example_error": True,
}
