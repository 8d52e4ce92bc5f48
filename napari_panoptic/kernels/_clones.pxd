# Return types of functions that are compiled twice: for every processor, and with AVX2.
#
# The loader of glibc chooses one of the two when the module is imported; elsewhere there is one.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
    #define CLONED __attribute__((target_clones("default", "avx2")))
    #else
    #define CLONED
    #endif
    """
    ctypedef int cloned_int "CLONED int"
    ctypedef Py_ssize_t cloned_size "CLONED Py_ssize_t"
