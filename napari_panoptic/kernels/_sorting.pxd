# Sorting inside kernels, by Shell's method: short arrays, as here, by insertion.

from libc.stdint cimport int32_t, int64_t

ctypedef fused number:
    int32_t
    int64_t


cdef inline int sort(
    number[::1] values, Py_ssize_t begin, Py_ssize_t end
) except -1 nogil:
    """Sort the values from begin to end in place."""
    cdef Py_ssize_t gap = 1, i, k
    cdef number value
    while 3 * gap < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            value = values[i]
            k = i
            while k >= begin + gap and values[k - gap] > value:
                values[k] = values[k - gap]
                k -= gap
            values[k] = value
        gap //= 3
    return 0
