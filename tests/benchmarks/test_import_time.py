import import_time


def test_each_program_stands_beside_the_import_of_numpy(capsys):
    import_time.main(["--rounds", "1"])
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row[:26].rstrip() for row in rows] == list(import_time.PROGRAMS)
    assert rows[0].count(" 1.00 ×") == 2
