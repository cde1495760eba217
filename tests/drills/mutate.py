"""Makes files hostile: the changes that drills of formats make to bytes."""
NUMBERS = (0, 1, 7, 255, 65535, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -1, -2**63)
WORDS = ("null", "true", "[]", "{}", '""', "[" * 5000, "1e400", "NaN", '"\\ud800"', "0.5", "-0")


def flip(draws, data):
    data = bytearray(data)
    for _ in range(draws.randint(1, 4)):
        if data:
            data[draws.randrange(len(data))] ^= 1 << draws.randrange(8)
    return bytes(data)


def cut(draws, data):
    return data[:draws.randrange(len(data) + 1)]


def grow(draws, data):
    return data + draws.randbytes(draws.choice((1, 7, 64, 5000)))


def splice(draws, data):
    at, begin, end = (draws.randrange(len(data) + 1) for _ in range(3))
    return data[:at] + data[min(begin, end):max(begin, end)] + data[at:]


def number(draws):
    """Returns a number that is rare in files."""
    return draws.choice(NUMBERS) + draws.choice((0, 0, 1, -1))


def replace_number(draws, text):
    """Returns text with one run of digits replaced by another number, or by something that is not a
    number."""
    runs, begin = [], None
    for i, letter in enumerate(text + b" "):
        digit = 48 <= letter <= 57
        begin = i if digit and begin is None else begin
        if not digit and begin is not None:
            runs.append((begin, i))
            begin = None
    if not runs:
        return text
    begin, end = draws.choice(runs)
    word = draws.choice(WORDS) if draws.random() < 0.3 else str(number(draws))
    return text[:begin] + word.encode() + text[end:]


def damage(draws, data):
    """Returns bytes with a random change."""
    return draws.choice((flip, cut, grow, splice))(draws, data)
