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

/* Four bytes at once: each nibble goes into a byte of its own, then all eight become digits. */
static uint64_t hex_of_four(uint32_t word)
{
    const uint64_t sixes = UINT64_C(0x0606060606060606);
    const uint64_t ones = UINT64_C(0x0101010101010101);
    uint64_t spread = word;
    uint64_t nibbles;

    spread = (spread | spread << 16) & UINT64_C(0x0000FFFF0000FFFF);
    spread = (spread | spread << 8) & UINT64_C(0x00FF00FF00FF00FF);
    nibbles = (spread >> 4 & UINT64_C(0x000F000F000F000F)) | (spread & UINT64_C(0x000F000F000F000F))
                                                                 << 8;
    /* Ten and more carry into the next four bits when six is added: those are letters. */
    return nibbles + '0' * ones + ((nibbles + sixes) >> 4 & ones) * ('a' - '0' - 10);
}

void peg__hex(const unsigned char *bytes, size_t n, char *ret_hex)
{
    static const char digits[] = "0123456789abcdef";
    size_t i = 0;

    for (; i + 4 <= n; i += 4) {
        uint32_t word;
        uint64_t text;

        memcpy(&word, bytes + i, sizeof(word));
        text = htole64(hex_of_four(le32toh(word)));
        memcpy(ret_hex + 2 * i, &text, sizeof(text));
    }
    for (; i < n; i++) {
        ret_hex[2 * i] = digits[bytes[i] >> 4];
        ret_hex[2 * i + 1] = digits[bytes[i] & 15];
    }
    ret_hex[2 * n] = '\0';
}

/* ---- sealing: nonce, ciphertext, tag ---- */

enum { NONCE_BYTES = 12, TAG_BYTES = 16 };

bool peg__seal(const unsigned char key[PEG_SEAL_KEY_BYTES], peg_str bytes, char *ret_sealed)
{
    EVP_CIPHER_CTX *cipher = EVP_CIPHER_CTX_new();
    unsigned char *to = (unsigned char *)ret_sealed;
    int len = 0;
    const bool is_sealed =
        cipher && peg__random(to, NONCE_BYTES) &&
        EVP_EncryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, to) == 1 &&
        EVP_EncryptUpdate(cipher, to + NONCE_BYTES, &len, (const unsigned char *)bytes.ptr,
                          (int)bytes.len) == 1 &&
        EVP_EncryptFinal_ex(cipher, to + NONCE_BYTES + len, &len) == 1 &&
        EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_GET_TAG, TAG_BYTES,
                            to + NONCE_BYTES + bytes.len) == 1;

    EVP_CIPHER_CTX_free(cipher);
    return is_sealed;
}

bool peg__unseal(const unsigned char key[PEG_SEAL_KEY_BYTES], peg_str sealed, char *ret_bytes)
{
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
    is_open = cipher && EVP_DecryptInit_ex(cipher, EVP_aes_256_gcm(), NULL, key, from) == 1 &&
              EVP_DecryptUpdate(cipher, (unsigned char *)ret_bytes, &len, from + NONCE_BYTES,
                                n_bytes) == 1 &&
              EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
              EVP_DecryptFinal_ex(cipher, (unsigned char *)ret_bytes + len, &len) == 1;
    EVP_CIPHER_CTX_free(cipher);
    return is_open;
}
