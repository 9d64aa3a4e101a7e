/* The 27 awkward keys that object stores have been seen to hold, and their strict
 * percent-encoding: everything but A-Za-z0-9-._~ and '/', upper-case hex, byte by byte, nothing
 * normalised. */
#ifndef TESTS_WIRE_KEYS_H
#define TESTS_WIRE_KEYS_H

static const struct {
    const char *key, *encoded;
} awkward_keys[] = {
    {"plain", "plain"},
    {"a/b/c/0.0.0", "a/b/c/0.0.0"},
    {"with space", "with%20space"},
    {"plus+plus", "plus%2Bplus"},
    {"percent%41literal", "percent%2541literal"},
    {"percent%zz", "percent%25zz"},
    {"eq=uals", "eq%3Duals"},
    {"zarr/temp=erature/lat:0/c/0/1", "zarr/temp%3Derature/lat%3A0/c/0/1"},
    {"star*paren()excl!apos'", "star%2Aparen%28%29excl%21apos%27"},
    {"tilde~dash-under_dot.", "tilde~dash-under_dot."},
    {"comma,semi;colon:at@dollar$amp&", "comma%2Csemi%3Bcolon%3Aat%40dollar%24amp%26"},
    {"hash#quest?mark", "hash%23quest%3Fmark"},
    {"brackets[x]{y}", "brackets%5Bx%5D%7By%7D"},
    {"pipe|caret^back`tick", "pipe%7Ccaret%5Eback%60tick"},
    {"back\\slash", "back%5Cslash"},
    {"quote\"lt<gt>", "quote%22lt%3Cgt%3E"},
    {"uml-\303\274-\303\237-\346\227\245\346\234\254\350\252\236-\360\237\214\215",
     "uml-%C3%BC-%C3%9F-%E6%97%A5%E6%9C%AC%E8%AA%9E-%F0%9F%8C%8D"},
    {"double//slash", "double//slash"},
    {"a//b", "a//b"},
    {"./dotstart", "./dotstart"},
    {"a/./b", "a/./b"},
    {"a/../b", "a/../b"},
    {"trailing/", "trailing/"},
    {"tab\011tab", "tab%09tab"},
    {"nfd-\303\251", "nfd-%C3%A9"},
    {"a b+c%20d=e/f", "a%20b%2Bc%2520d%3De/f"},
    {"/leading", "/leading"},
};
#define AWKWARD_KEYS (sizeof awkward_keys / sizeof *awkward_keys)

#endif
