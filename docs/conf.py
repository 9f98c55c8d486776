"""The documentation site: `python docs/build.py` builds it, warnings are errors, and no page asks another host."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

import festina  # noqa: E402

project = "festina"
author = "The festina authors"
copyright = author
release = version = festina.__version__
language = "en"
smartquotes = False  # texts of the API hold code

extensions = ["myst_parser", "sphinx.ext.mathjax", "sphinx_copybutton", "festina_site"]
exclude_patterns = ["_build", "figures"]
templates_path: list[str] = []

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
myst_update_mathjax = False

# Every glyph is a path in this one script: nothing is fetched, and the site works from a folder.
mathjax_path = "mathjax/tex-svg-full.js"
mathjax3_config = {
    "svg": {"fontCache": "global"},
    "options": {"processHtmlClass": "math", "ignoreHtmlClass": "document", "enableMenu": False},
    "tex": {"inlineMath": [["\\(", "\\)"]], "displayMath": [["\\[", "\\]"]]},
}
math_numfig = False
math_eqref_format = "equation {number}"

html_theme = "furo"
html_title = f"festina {release}"
html_static_path = ["_static"]
html_css_files = ["report.css", "festina.css"]
html_show_copyright = html_show_sphinx = html_copy_source = False
html_theme_options = {
    "light_css_variables": {
        "color-brand-primary": "#1d5a85",
        "color-brand-content": "#1d5a85",
        "color-brand-visited": "#1d5a85",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8dbfe3",
        "color-brand-content": "#8dbfe3",
        "color-brand-visited": "#8dbfe3",
    },
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

add_module_names = True
python_maximum_signature_line_length = 72
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"
