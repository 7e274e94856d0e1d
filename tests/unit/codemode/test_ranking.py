from codespace.codemode.ranking import Ranking, weighed, words


def test_words_are_the_same_in_every_spelling() -> None:
    assert words("getIssueURLs") == words("get_issue_urls") == words("Get-issue URLs")
    assert words("class classes") == ["class", "class"]
    assert words("queries is v2 日本") == ["query", "is", "v", "2", "日本"]


def test_rare_words_weigh_more_than_common_ones() -> None:
    ranking = Ranking.of(
        [weighed([(text, 1.0)]) for text in ("list files", "list mails", "list list")]
    )

    assert ranking.best("list mails")[0] == 1


def test_a_short_document_wins_over_a_long_one() -> None:
    ranking = Ranking.of(
        [weighed([("mail " + "other words " * 50, 1.0)]), weighed([("mail", 1.0)])]
    )

    assert ranking.best("mail") == [1, 0]


def test_what_has_no_word_of_the_query_is_not_found() -> None:
    ranking = Ranking.of([weighed([("mail", 1.0)])])

    assert ranking.best("weather") == []
    assert ranking.best("") == []
    assert Ranking.of([]).best("x") == []


def test_equal_documents_stay_in_order() -> None:
    assert Ranking.of([weighed([("a", 1.0)])] * 3).best("a") == [0, 1, 2]
