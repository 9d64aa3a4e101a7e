/* Order version 1, frozen: a released order never changes, so a hash here never changes either. Each row is an epoch, walked
 * batch by batch by one rank; hash: FNV-1a over 9 bytes a row (sample id, little-endian, and valid).
 *
 * axis, cell: samples, and samples a chunk (block = 1 chunk); start: the view takes step `start`; ids [first, last), of
 * those, if keep > 0, the ids with (id × 2654435761 >> 7) % 3 < keep. shuffle and remainder as in headrace.h.
 * order_model.py computes them by the definition alone, without the library.
 *
 *    axis  cell start first  last keep shuffle remainder spread streams batch seed epoch hash */
ORDER(  512,   32,  0,    0,   512,   0,      1,        1,    16,      1,   64,   0,    0, 0x600141d0d34abe07)
ORDER(  512,   32,  0,    0,   512,   0,      1,        1,    16,      1,   64,   0,    1, 0xea4eddfa6e35dbd5)
ORDER(  512,   32,  0,    0,   512,   0,      1,        1,    16,      1,   64,   1,    0, 0x743a7d4b7977de87)
ORDER( 1000,    7,  0,    3,   995,   0,      1,        1,     8,      4,   20,   7,    3, 0xc8d1598ac9467584)
ORDER( 1000,    7,  5,    3,   995,   0,      1,        2,     8,      3,   21,   7,    3, 0xdab7fd7e19e43a1a)
ORDER( 1000,    7, -3,    3,   995,   0,      1,        4,     8,      3,   21,   7,    3, 0x48a8daff38190573)
ORDER( 1000,    1,  0,    0,  1000,   0,      1,        1,    16,      1,   10,  11,    2, 0x57618a6c993d94cb)
ORDER( 2000,  500,  0,    0,  2000,   0,      1,        3,    16,      1,   64,   5,    0, 0x2cd1e04461660afb)
ORDER( 3000,   40,  0,   10,  2990,   1,      1,        1,    12,      1,   32,   2,    9, 0xdc9179459211bb19)
ORDER( 3000,   40,  0,   10,  2990,   2,      1,        2,    12,      6,   48,   2,    9, 0xd1a714123707a8d8)
ORDER( 9000,    3,  0,    0,  9000,   0,      1,        1,   100,      2,   60, 9223372036854775807, 4294967296, 0x2614b698466ac267)
ORDER(   13,   50,  0,    0,    13,   0,      1,        4,    16,      4,    8,   3,    0, 0x23a881b908c35358)
ORDER( 1000,   10,  0,    0,  1000,   0,      2,        1,    16,      4,   40,   9,    5, 0xbe2dad4d05161f59)
ORDER( 1000,   10,  0,    0,   999,   1,      2,        2,    16,      2,   40,   9,    5, 0x475f54a9f0f57aa3)
ORDER( 1000,   10,  0,    0,  1000,   0,      0,        3,    16,      1,   64,   0,    0, 0xf3b120e18e13864d)
ORDER( 1000,   10,  0,    0,   998,   0,      0,        2,    16,      4,   64,   0,    0, 0xb842dcac7783a59a)
