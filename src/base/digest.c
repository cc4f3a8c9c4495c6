/* SPDX-License-Identifier: Apache-2.0 */

#include "base/hash.h"

#include <endian.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "base/id.h"

/* Looking the algorithm up by name, as SHA256() does each time, costs more than a short digest.
 * Never given back: OpenSSL may be cleaned up before anything of ours runs at the end. */
static EVP_MD *sha256;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void fetch_sha256(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
}

bool peg__sha256(peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES])
{
    pthread_once(&sha256_once, fetch_sha256);
    return sha256 && EVP_Digest(bytes.ptr, bytes.len, ret_digest, NULL, sha256, NULL) == 1;
}

static bool digest_two(EVP_MD_CTX *context, peg_str first, peg_str second,
                       unsigned char ret_digest[PEG_SHA256_BYTES])
{
    return EVP_DigestInit_ex(context, sha256, NULL) == 1 &&
           EVP_DigestUpdate(context, first.ptr, first.len) == 1 &&
           EVP_DigestUpdate(context, second.ptr, second.len) == 1 &&
           EVP_DigestFinal_ex(context, ret_digest, NULL) == 1;
}

/* RFC 2104, because OpenSSL's HMAC() takes four times as long as the four digests in it: every call
 * with an identity pays for one. */
bool peg__hmac_sha256(peg_str key, peg_str bytes, unsigned char ret_digest[PEG_SHA256_BYTES])
{
    enum { BLOCK = 64, INNER = 0x36, OUTER = 0x5c };
    unsigned char pad[BLOCK] = {0};
    const peg_str padded = {(const char *)pad, sizeof(pad)};
    const peg_str inner = {(const char *)ret_digest, PEG_SHA256_BYTES};
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool is_made = key.len <= sizeof(pad) || peg__sha256(key, pad);

    pthread_once(&sha256_once, fetch_sha256);
    if (key.len && key.len <= sizeof(pad))
        memcpy(pad, key.ptr, key.len);
    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] ^= INNER;
    is_made = is_made && context && sha256 && digest_two(context, padded, bytes, ret_digest);
    for (size_t i = 0; i < sizeof(pad); i++)
        pad[i] ^= INNER ^ OUTER;
    is_made = is_made && digest_two(context, padded, inner, ret_digest);
    OPENSSL_cleanse(pad, sizeof(pad));
    EVP_MD_CTX_free(context);
    return is_made;
}

typedef unsigned char sixteen __attribute__((vector_size(16)));

/* Each half of a byte goes into a byte of its own, then all sixteen become digits at once. */
static void put_hex_of_eight(const unsigned char *bytes, char *ret_hex)
{
    sixteen word = {0};
    sixteen halves;

    memcpy(&word, bytes, 8);
    halves = __builtin_shufflevector(word >> 4, word & 15, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21,
                                     6, 22, 7, 23);
    halves += '0' + ((sixteen)(halves > 9) & ('a' - '0' - 10));
    memcpy(ret_hex, &halves, sizeof(halves));
}

void peg__hex(const unsigned char *bytes, size_t n, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        put_hex_of_eight(bytes + i, ret_hex + 2 * i);
    for (; i < n; i++) {
        ret_hex[2 * i] = digits[bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_hex[2 * n] = '\0';
}

/* ---- sealing: nonce, ciphertext, tag ---- */

enum { NONCE_BYTES = 12, TAG_BYTES = 16 };

static bool make_key(const unsigned char *secret, const char *purpose,
                     unsigned char ret_key[PEG_SHA256_BYTES])
{
    return peg__hmac_sha256((peg_str){(const char *)secret, PEG_SEAL_SECRET_BYTES},
                            (peg_str){purpose, strlen(purpose)}, ret_key);
}

bool peg__seal(const unsigned char secret[PEG_SEAL_SECRET_BYTES], const char *purpose,
               peg_str bytes, char *ret_sealed)
{
    unsigned char key[PEG_SHA256_BYTES];
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    unsigned char *to = (unsigned char *)ret_sealed;
    int len = 0;
    const bool is_sealed =
        cipher && make_key(secret, purpose, key) && peg__random(to, NONCE_BYTES) &&
        EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, to) == 1 &&
        EVP_EncryptUpdate(cipher, to + NONCE_BYTES, &len, (const unsigned char *)bytes.ptr,
                          (int)bytes.len) == 1 &&
        EVP_EncryptFinal_ex(cipher, to + NONCE_BYTES + len, &len) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_BYTES,
                            to + NONCE_BYTES + bytes.len) == 1;

    OPENSSL_cleanse(key, sizeof(key));
    EVP_CIPHER_CTX_free(cipher);
    return is_sealed;
}

bool peg__unseal(const unsigned char secret[PEG_SEAL_SECRET_BYTES], const char *purpose,
                 peg_str sealed, char *ret_bytes)
{
    unsigned char key[PEG_SHA256_BYTES];
    const unsigned char *from = (const unsigned char *)sealed.ptr;
    unsigned char tag[TAG_BYTES];
    EVP_CIPHER_CTX *cipher;
    int n_bytes;
    int len = 0;
    bool is_open;

    if (sealed.len < PEG_SEAL_EXTRA)
        return false;
    n_bytes = (int)(sealed.len - PEG_SEAL_EXTRA);
    memcpy(tag, from + NONCE_BYTES + n_bytes, TAG_BYTES);
    cipher = EVP_CIPHER_CTX_new();
    is_open = cipher && make_key(secret, purpose, key) &&
              EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, from) == 1 &&
              EVP_DecryptUpdate(cipher, (unsigned char *)ret_bytes, &len, from + NONCE_BYTES,
                                n_bytes) == 1 &&
              EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
              EVP_DecryptFinal_ex(cipher, (unsigned char *)ret_bytes + len, &len) == 1;
    OPENSSL_cleanse(key, sizeof(key));
    EVP_CIPHER_CTX_free(cipher);
    return is_open;
}
