"""What matching told whom, in words."""

from plumbob.data.matched import Matched
from plumbob.report import matching

TOLD = [
    Matched("bank", ("shop",), rows=120, shared=90, listed=100),
    Matched("shop", ("bank", "gym"), rows=90, shared=90, listed=120, ids_shown=True),
]


def test_each_party_and_those_it_learns_about_have_a_sentence() -> None:
    bank, shop = matching.sentences(TOLD)
    assert bank == (
        "bank learns of each of 120 people whether shop has them: 90 yes, 30 no. Certain for each; the more frequent answer for "
        "all would be right for 75 %. It also sees a list of 100 people from shop, of which it can read the shared ones only."
    )
    assert "whether bank and gym all have them: all yes" in shop
    assert "the ids of all 120 people of bank, also of those it does not have itself" in shop


def test_the_answer_names_every_party_and_audits_without_matching_say_nothing() -> None:
    said = matching.in_short(TOLD)
    assert "bank which of its 120 people shop has (90)" in said
    assert "shop which of its 90 people bank and gym all have (90)" in said
    assert matching.in_short([]) == ""
