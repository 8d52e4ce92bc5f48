"""Compiled code: loops over pixels.

Rules for a kernel:

- A public function is a `def`: typed memoryviews (`const` if it only reads, ``[:, ::1]``,
  ``not None``) check type, dimensions, contiguity and byte order, and `expect` in ``_border.pxd``
  the rest. It allocates with NumPy and then calls a `cdef` function `with nogil`. Its signature is
  in the ``.pyi``.
- A `cdef` function that can fail is ``except -1`` and returns a value. `noexcept` would swallow the
  IndexError of a build that checks indices, and ``except *`` takes the GIL at each call.
- Index memoryviews, not pointers, which no build checks. Scratch arrays are allocated once, for the
  largest object. No kernel allocates a second image.
- ``/`` and ``%`` of integers truncate as in C.
- What several modules need is `cdef inline` in a ``.pxd`` file. A new ``.pyx`` file is built
  without being listed anywhere.
- A kernel has a slow, obvious oracle in the tests. `kernels.threads.in_threads` splits large images
  between two threads.
"""
