# Where the pixels of a line change.

from libc.stdint cimport int32_t, uint8_t, uint64_t
from libc.string cimport memcpy


cdef inline uint64_t word_at(const uint8_t[::1] line, Py_ssize_t place) noexcept nogil:
    """Return eight bytes as one number; compilers make a single load of it."""
    cdef uint64_t word
    memcpy(&word, &line[place], 8)
    return word


cdef inline Py_ssize_t padded(Py_ssize_t width) noexcept nogil:
    """Return the length of `changed` in :func:`list_changes` for lines of a width."""
    return width // 8 * 8 + 8


cdef inline int list_changes(
    const uint8_t[::1] changed, int32_t[::1] words, int32_t[::1] changes
) except -1 nogil:
    """List the positions of the marked changes, ascending; return their number.

    There is no branch per pixel or word: changes cannot be predicted, and a wrong prediction
    costs more than all other work.

    Parameters
    ----------
    changed
        One byte per pixel, 0 or 1, and 0 beyond the line; of the length `padded`.
    words
        Buffer for one word more than ``changed`` has.
    changes
        Receives the positions; has room for one pixel more than the line has.
    """
    cdef int32_t word, n_words = 0, count = 0, k, byte
    cdef uint64_t bits, lowest
    for word in range(<int32_t>(changed.shape[0] // 8)):
        words[n_words] = word
        n_words += word_at(changed, 8 * word) != 0
    for k in range(n_words):
        word = words[k]
        bits = word_at(changed, 8 * word)
        if bits == 0x0101010101010101ULL:  # as in noise
            for byte in range(8):
                changes[count + byte] = 8 * word + byte
            count += 8
            continue
        while bits != 0:
            lowest = bits & (~bits + 1)
            # Multiplied by a single 1, this has the place of its byte in the highest byte.
            changes[count] = 8 * word + <int32_t>((lowest * 0x0001020304050607ULL) >> 56)
            count += 1
            bits ^= lowest
    return count
