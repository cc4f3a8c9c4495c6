/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What follows a backslash. ECMA-262 with the u flag allows few escapes; we also read a backslash
 * before punctuation as that character, because patterns are written without the flag too and no
 * dialect reads \- or \@ otherwise. Letters and digits that ECMA-262 does not define are refused:
 * in other dialects they mean something (\A, \h, \Q), and ignoring that would match wrongly.
 */

#include "base/text/str.h"
#include "schema/pattern/internal.h"

/* ---- \p{...} ------------------------------------------------------------------
 *
 * The names that ECMA-262 allows, exactly as it spells them: PCRE2 ignores case and underscores and
 * knows more, and a pattern must not depend on that. Scripts are those of Unicode 14, which is what
 * PCRE2 10.42 has. Names are separated by one space, with one at each end.
 */
static const char scripts[] =
    " "
    "Adlm Adlam Aghb Caucasian_Albanian Ahom Arab Arabic Armi Imperial_Aramaic Armn Armenian "
    "Avst Avestan Bali Balinese Bamu Bamum Bass Bassa_Vah Batk Batak Beng Bengali Bhks "
    "Bhaiksuki Bopo Bopomofo Brah Brahmi Brai Braille Bugi Buginese Buhd Buhid Cakm Chakma "
    "Cans Canadian_Aboriginal Cari Carian Cham Cher Cherokee Chrs Chorasmian Copt Coptic Qaac "
    "Cpmn Cypro_Minoan Cprt Cypriot Cyrl Cyrillic Deva Devanagari Diak Dives_Akuru Dogr Dogra "
    "Dsrt Deseret Dupl Duployan Egyp Egyptian_Hieroglyphs Elba Elbasan Elym Elymaic Ethi "
    "Ethiopic Geor Georgian Glag Glagolitic Gong Gunjala_Gondi Gonm Masaram_Gondi Goth Gothic "
    "Gran Grantha Grek Greek Gujr Gujarati Guru Gurmukhi Hang Hangul Hani Han Hano Hanunoo "
    "Hatr Hatran Hebr Hebrew Hira Hiragana Hluw Anatolian_Hieroglyphs Hmng Pahawh_Hmong Hmnp "
    "Nyiakeng_Puachue_Hmong Hung Old_Hungarian Ital Old_Italic Java Javanese Kali Kayah_Li "
    "Kana Katakana Khar Kharoshthi Khmr Khmer Khoj Khojki Kits Khitan_Small_Script Knda "
    "Kannada Kthi Kaithi Lana Tai_Tham Laoo Lao Latn Latin Lepc Lepcha Limb Limbu Lina "
    "Linear_A Linb Linear_B Lisu Lyci Lycian Lydi Lydian Mahj Mahajani Maka Makasar Mand "
    "Mandaic Mani Manichaean Marc Marchen Medf Medefaidrin Mend Mende_Kikakui Merc "
    "Meroitic_Cursive Mero Meroitic_Hieroglyphs Mlym Malayalam Modi Mong Mongolian Mroo Mro "
    "Mtei Meetei_Mayek Mult Multani Mymr Myanmar Nand Nandinagari Narb Old_North_Arabian Nbat "
    "Nabataean Newa Nkoo Nko Nshu Nushu Ogam Ogham Olck Ol_Chiki Orkh Old_Turkic Orya Oriya "
    "Osge Osage Osma Osmanya Ougr Old_Uyghur Palm Palmyrene Pauc Pau_Cin_Hau Perm Old_Permic "
    "Phag Phags_Pa Phli Inscriptional_Pahlavi Phlp Psalter_Pahlavi Phnx Phoenician Plrd Miao "
    "Prti Inscriptional_Parthian Rjng Rejang Rohg Hanifi_Rohingya Runr Runic Samr Samaritan "
    "Sarb Old_South_Arabian Saur Saurashtra Sgnw SignWriting Shaw Shavian Shrd Sharada Sidd "
    "Siddham Sind Khudawadi Sinh Sinhala Sogd Sogdian Sogo Old_Sogdian Sora Sora_Sompeng Soyo "
    "Soyombo Sund Sundanese Sylo Syloti_Nagri Syrc Syriac Tagb Tagbanwa Takr Takri Tale "
    "Tai_Le Talu New_Tai_Lue Taml Tamil Tang Tangut Tavt Tai_Viet Telu Telugu Tfng Tifinagh "
    "Tglg Tagalog Thaa Thaana Thai Tibt Tibetan Tirh Tirhuta Tnsa Tangsa Toto Ugar Ugaritic "
    "Vaii Vai Vith Vithkuqi Wara Warang_Citi Wcho Wancho Xpeo Old_Persian Xsux Cuneiform Yezi "
    "Yezidi Yiii Yi Zanb Zanabazar_Square Zinh Inherited Qaai Zyyy Common Zzzz Unknown ";

/* PCRE2 knows each of these under the same name, but for Changes_When_NFKC_Casefolded. */
static const char binary_properties[] =
    " "
    "ASCII ASCII_Hex_Digit AHex Alphabetic Alpha Any Bidi_Control Bidi_C Bidi_Mirrored Bidi_M "
    "Case_Ignorable CI Cased Changes_When_Casefolded CWCF Changes_When_Casemapped CWCM "
    "Changes_When_Lowercased CWL Changes_When_NFKC_Casefolded CWKCF Changes_When_Titlecased "
    "CWT Changes_When_Uppercased CWU Dash Default_Ignorable_Code_Point DI Deprecated Dep "
    "Diacritic Dia Emoji Emoji_Component EComp Emoji_Modifier EMod Emoji_Modifier_Base EBase "
    "Emoji_Presentation EPres Extended_Pictographic ExtPict Extender Ext Grapheme_Base "
    "Gr_Base Grapheme_Extend Gr_Ext Hex_Digit Hex IDS_Binary_Operator IDSB "
    "IDS_Trinary_Operator IDST ID_Continue IDC ID_Start IDS Ideographic Ideo Join_Control "
    "Join_C Logical_Order_Exception LOE Lowercase Lower Math Noncharacter_Code_Point NChar "
    "Pattern_Syntax Pat_Syn Pattern_White_Space Pat_WS Quotation_Mark QMark Radical "
    "Regional_Indicator RI Sentence_Terminal STerm Soft_Dotted SD Terminal_Punctuation Term "
    "Unified_Ideograph UIdeo Uppercase Upper Variation_Selector VS White_Space space "
    "XID_Continue XIDC XID_Start XIDS ";

/* What PCRE2 calls a category, and its names. */
static const struct {
    const char *pcre2;
    const char *names;
} categories[] = {
    {"C", " C Other "},
    {"Cc", " Cc Control cntrl "},
    {"Cf", " Cf Format "},
    {"Cn", " Cn Unassigned "},
    {"Co", " Co Private_Use "},
    {"Cs", " Cs Surrogate "},
    {"L", " L Letter "},
    {"L&", " LC Cased_Letter "},
    {"Ll", " Ll Lowercase_Letter "},
    {"Lm", " Lm Modifier_Letter "},
    {"Lo", " Lo Other_Letter "},
    {"Lt", " Lt Titlecase_Letter "},
    {"Lu", " Lu Uppercase_Letter "},
    {"M", " M Mark Combining_Mark "},
    {"Mc", " Mc Spacing_Mark "},
    {"Me", " Me Enclosing_Mark "},
    {"Mn", " Mn Nonspacing_Mark "},
    {"N", " N Number "},
    {"Nd", " Nd Decimal_Number digit "},
    {"Nl", " Nl Letter_Number "},
    {"No", " No Other_Number "},
    {"P", " P Punctuation punct "},
    {"Pc", " Pc Connector_Punctuation "},
    {"Pd", " Pd Dash_Punctuation "},
    {"Pe", " Pe Close_Punctuation "},
    {"Pf", " Pf Final_Punctuation "},
    {"Pi", " Pi Initial_Punctuation "},
    {"Po", " Po Other_Punctuation "},
    {"Ps", " Ps Open_Punctuation "},
    {"S", " S Symbol "},
    {"Sc", " Sc Currency_Symbol "},
    {"Sk", " Sk Modifier_Symbol "},
    {"Sm", " Sm Math_Symbol "},
    {"So", " So Other_Symbol "},
    {"Z", " Z Separator "},
    {"Zl", " Zl Line_Separator "},
    {"Zp", " Zp Paragraph_Separator "},
    {"Zs", " Zs Space_Separator "},
};

static bool lists(const char *names, peg_str name)
{
    char wanted[48];

    if (name.len == 0 || name.len > sizeof(wanted) - 2 || memchr(name.ptr, ' ', name.len))
        return false;
    wanted[0] = ' ';
    memcpy(wanted + 1, name.ptr, name.len);
    wanted[name.len + 1] = ' ';
    return memmem(names, strlen(names), wanted, name.len + 2) != NULL;
}

static bool find_category(peg_str name, struct peg__token *token)
{
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (!lists(categories[i].names, name))
            continue;
        token->name = categories[i].pcre2;
        token->name_len = strlen(categories[i].pcre2);
        return true;
    }
    return false;
}

static bool find_script(peg_str name, const char *prefix, struct peg__token *token)
{
    if (!lists(scripts, name))
        return false;
    token->name_prefix = prefix;
    token->name = name.ptr;
    token->name_len = name.len;
    return true;
}

/* A name without a value: a binary property or a general category. */
static bool find_lone(peg_str name, struct peg__token *token)
{
    if (peg__str_is(name, "Assigned")) {
        token->negated = !token->negated;
        return find_category((peg_str){"Cn", 2}, token);
    }
    if (!lists(binary_properties, name))
        return find_category(name, token);
    token->name = name.ptr;
    token->name_len = name.len;
    return true;
}

/* Puts the PCRE2 spelling of the property into token; false if ECMA-262 has no such name. */
static bool find_property(peg_str body, struct peg__token *token)
{
    const char *equals = body.len ? memchr(body.ptr, '=', body.len) : NULL;
    peg_str property;
    peg_str value;

    token->name_prefix = "";
    if (!equals)
        return find_lone(body, token);
    property = (peg_str){body.ptr, (size_t)(equals - body.ptr)};
    value = peg__str_from(body, property.len + 1);
    if (peg__str_is(property, "General_Category") || peg__str_is(property, "gc"))
        return find_category(value, token);
    if (peg__str_is(property, "Script") || peg__str_is(property, "sc"))
        return find_script(value, "sc:", token);
    if (peg__str_is(property, "Script_Extensions") || peg__str_is(property, "scx"))
        return find_script(value, "scx:", token);
    return false;
}

/* ---- escapes of other dialects ------------------------------------------------- */

static const struct {
    char letter;
    const char *hint;
} foreign_escapes[] = {
    {'A', "write ^ for the start"},
    {'Z', "write $ for the end"},
    {'z', "write $ for the end"},
    {'a', "write \\x07 for the bell"},
    {'e', "write \\x1B for the escape character"},
    {'h', "write [ \\t] for blanks"},
    {'H', "write [^ \\t] for what is not blank"},
    {'R', "write (?:\\r\\n|[\\n\\r]) for a line end"},
    {'N', "write . for what is not a line end"},
    {'X', "write . for one character"},
    {'Q', "put a backslash before each special character"},
    {'E', "put a backslash before each special character"},
    {'g', "write \\1 or \\k<name> for a backreference"},
    {'G', "a pattern is searched anywhere; write ^ for the start"},
    {'K', "write a lookbehind (?<=...)"},
};

static bool is_among(char letter, const char *letters)
{
    return letter && strchr(letters, letter);
}

static unsigned char byte_at(peg_str text, size_t at)
{
    return at < text.len ? (unsigned char)text.ptr[at] : 0;
}

/* ---- characters ------------------------------------------------------------- */

bool peg__pattern_utf8(peg_str text, size_t *at, uint32_t *ret_char)
{
    const size_t n = peg__utf8_decode(peg__str_from(text, *at), ret_char);

    *at += n;
    return n > 0;
}

/* n hexadecimal digits at `at`. */
static bool read_hex(peg_str text, size_t at, unsigned n, uint32_t *ret_value)
{
    uint32_t value = 0;

    for (unsigned i = 0; i < n; i++) {
        const int digit = peg__hex_value((char)byte_at(text, at + i));

        if (digit < 0)
            return false;
        value = value << 4 | (unsigned)digit;
    }
    *ret_value = value;
    return true;
}

/* {H...} up to 10FFFF, with *at on the brace. */
static bool read_braced_hex(peg_str text, size_t *at, uint32_t *ret_value)
{
    uint32_t value = 0;
    uint32_t digit;
    size_t i = *at + 1;

    for (; read_hex(text, i, 1, &digit); i++) {
        value = value << 4 | digit;
        if (value > 0x10FFFF)
            return false;
    }
    if (i == *at + 1 || byte_at(text, i) != '}')
        return false;
    *at = i + 1;
    *ret_value = value;
    return true;
}

/* The rest of \u, with *at behind the u. A pair of surrogates is one character. */
static bool read_unicode(peg_str text, size_t *at, uint32_t *ret_char)
{
    uint32_t high;
    uint32_t low;

    if (byte_at(text, *at) == '{')
        return read_braced_hex(text, at, ret_char);
    if (!read_hex(text, *at, 4, &high))
        return false;
    *at += 4;
    *ret_char = high;
    if (high < 0xD800 || high > 0xDBFF || byte_at(text, *at) != '\\' ||
        byte_at(text, *at + 1) != 'u' || !read_hex(text, *at + 2, 4, &low))
        return true;
    if (low >= 0xDC00 && low <= 0xDFFF) {
        *at += 6;
        *ret_char = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
    }
    return true;
}

/* ---- names of groups ---------------------------------------------------------- */

/* One character of a group's name, which may be written as an escape. */
static bool read_name_char(peg_str text, size_t *at, bool first, uint32_t *ret_char)
{
    uint32_t c;

    if (*at >= text.len)
        return false;
    if (byte_at(text, *at) == '\\') {
        *at += 2;
        if (byte_at(text, *at - 1) != 'u' || !read_unicode(text, at, &c))
            return false;
    } else if (!peg__pattern_utf8(text, at, &c)) {
        return false;
    }
    *ret_char = c;
    if (c >= 0x80)
        return !peg__is_surrogate(c);
    return peg__is_letter((unsigned char)c) || c == '_' || c == '$' ||
           (!first && peg__is_digit((unsigned char)c));
}

bool peg__pattern_skip_name(peg_str text, size_t *at)
{
    bool first = true;
    uint32_t c;

    while (first || byte_at(text, *at) != '>') {
        if (!read_name_char(text, at, first, &c))
            return false;
        first = false;
    }
    (*at)++;
    return true;
}

static bool same_name(peg_str text, size_t a, size_t b)
{
    uint32_t c = 0;
    uint32_t d = 0;

    while (c == d) {
        if (byte_at(text, a) == '>' || byte_at(text, b) == '>')
            return byte_at(text, a) == byte_at(text, b);
        if (!read_name_char(text, &a, false, &c) || !read_name_char(text, &b, false, &d))
            return false;
    }
    return false;
}

/* The next capturing parenthesis at or after *at, which is left behind it. name_at is 0 for one
 * without a name. */
static bool find_capture(peg_str text, size_t *at, size_t *ret_name_at)
{
    bool in_class = false;

    for (size_t i = *at; i < text.len; i++) {
        const char c = text.ptr[i];
        const unsigned char sign = byte_at(text, i + 3);

        if (c == '\\') {
            i++;
        } else if (in_class || c == '[') {
            in_class = c != ']';
        } else if (c == '(' && byte_at(text, i + 1) != '?') {
            *at = i + 1;
            *ret_name_at = 0;
            return true;
        } else if (c == '(' && byte_at(text, i + 2) == '<' && sign != '=' && sign != '!') {
            *at = i + 3;
            *ret_name_at = i + 3;
            return true;
        }
    }
    return false;
}

uint32_t peg__pattern_find_name(peg_str text, size_t name_at)
{
    size_t at = 0;
    size_t other;

    for (uint32_t number = 1; find_capture(text, &at, &other); number++) {
        if (other && same_name(text, name_at, other))
            return number;
    }
    return 0;
}

static uint32_t count_captures(struct peg__pattern_reader *reader)
{
    size_t at = 0;
    size_t name_at;

    if (!reader->has_total) {
        while (find_capture(reader->text, &at, &name_at))
            reader->n_total++;
        reader->has_total = true;
    }
    return reader->n_total;
}

bool peg__pattern_may_refer_back(peg_str text)
{
    for (size_t i = 0; i + 1 < text.len; i++) {
        const unsigned char next = (unsigned char)text.ptr[i + 1];

        if (text.ptr[i] != '\\')
            continue;
        if (next == 'k' || (next >= '1' && next <= '9'))
            return true;
        i++;
    }
    return false;
}

/* ---- the kinds of escapes ------------------------------------------------------ */

/* A group that is still open or comes later is unset here, whatever happened before: entering it
 * again means repeating something around both, and ECMA-262 unsets captures at each repetition. */
static peg_status refer(struct peg__pattern_reader *reader, uint32_t number,
                        struct peg__token *token)
{
    token->kind = PEG__TOKEN_BACKREF;
    token->number = number <= reader->n_captures ? number : 0;
    token->in_lookbehind = false;
    for (unsigned i = 0; i < reader->depth; i++) {
        const struct peg__open_group *open = &reader->open[i];

        if (open->number == number)
            token->number = 0;
        if (open->group == PEG__GROUP_BEHIND || open->group == PEG__GROUP_NOT_BEHIND)
            token->in_lookbehind = true;
    }
    if (token->in_lookbehind)
        token->number = number; /* matched backwards: what comes later may be set */
    return PEG_OK;
}

static peg_status read_backref(struct peg__pattern_reader *reader, struct peg__token *token)
{
    uint32_t number = 0;

    for (; peg__is_digit(byte_at(reader->text, reader->at)); reader->at++) {
        if (number < 100000)
            number = number * 10 + (uint32_t)(reader->text.ptr[reader->at] - '0');
    }
    if (number > count_captures(reader))
        return PEG__PATTERN_REFUSE(
            reader, token->at,
            "\\%u refers to a group, but there are only %u; write \\xHH for a character code",
            number, reader->n_total);
    return refer(reader, number, token);
}

static peg_status read_named_backref(struct peg__pattern_reader *reader, struct peg__token *token)
{
    const size_t name_at = reader->at + 1;
    uint32_t number;

    if (byte_at(reader->text, reader->at) != '<')
        return PEG__PATTERN_REFUSE(reader, token->at, "\\k needs a group's name; write \\k<name>");
    reader->at++;
    if (!peg__pattern_skip_name(reader->text, &reader->at))
        return PEG__PATTERN_REFUSE(reader, name_at, "this is no group name; write \\k<name>");
    number = peg__pattern_find_name(reader->text, name_at);
    if (number == 0)
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "no group has this name; write (?<name>...) for it");
    return refer(reader, number, token);
}

static peg_status read_property(struct peg__pattern_reader *reader, struct peg__token *token)
{
    const peg_str text = reader->text;
    const size_t start = reader->at + 1;
    size_t end = start;

    token->kind = PEG__TOKEN_PROPERTY;
    while (end < text.len && text.ptr[end] != '}' && text.ptr[end] != '\\')
        end++;
    if (byte_at(text, reader->at) != '{' || byte_at(text, end) != '}')
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "\\p needs a name in braces, such as \\p{Letter}");
    if (!find_property((peg_str){text.ptr + start, end - start}, token))
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "unknown Unicode property; write a name of ECMA-262 such as "
                                   "\\p{Letter}, \\p{Lu}, \\p{Alphabetic} or \\p{Script=Greek}");
    reader->at = end + 1;
    return PEG_OK;
}

static peg_status read_code(struct peg__pattern_reader *reader, char letter,
                            struct peg__token *token)
{
    const peg_str text = reader->text;
    const unsigned char next = byte_at(text, reader->at);

    token->kind = PEG__TOKEN_CHAR;
    switch (letter) {
    case 'x':
        if (!read_hex(text, reader->at, 2, &token->lo))
            return PEG__PATTERN_REFUSE(reader, token->at,
                                       "\\x needs two hexadecimal digits, such as \\x0A");
        reader->at += 2;
        return PEG_OK;
    case 'u':
        if (!read_unicode(text, &reader->at, &token->lo))
            return PEG__PATTERN_REFUSE(reader, token->at,
                                       "\\u needs four hexadecimal digits or {...} up to "
                                       "{10FFFF}, such as \\u00E9 or \\u{1F409}");
        return PEG_OK;
    case 'c':
        if (!peg__is_letter(next))
            return PEG__PATTERN_REFUSE(reader, token->at, "\\c needs a letter, such as \\cJ");
        reader->at++;
        token->lo = next & 0x1F;
        return PEG_OK;
    default: /* 0 */
        if (peg__is_digit(next))
            return PEG__PATTERN_REFUSE(reader, token->at,
                                       "octal escapes are not ECMA-262; write \\xHH");
        token->lo = 0;
        return PEG_OK;
    }
}

static peg_status refuse_foreign(struct peg__pattern_reader *reader, char letter, size_t at)
{
    for (size_t i = 0; i < sizeof(foreign_escapes) / sizeof(foreign_escapes[0]); i++) {
        if (foreign_escapes[i].letter == letter)
            return PEG__PATTERN_REFUSE(reader, at, "\\%c is not ECMA-262; %s", letter,
                                       foreign_escapes[i].hint);
    }
    if (reader->in_class)
        return PEG__PATTERN_REFUSE(reader, at,
                                   "\\%c can't stand in a class; write \\xHH for a "
                                   "character code, or the character alone",
                                   letter);
    return PEG__PATTERN_REFUSE(
        reader, at, "\\%c is not ECMA-262; write %c for the letter, or \\xHH for a character code",
        letter, letter);
}

/* \n and the like; 0 if it is another letter. */
static uint32_t control_of(char letter)
{
    static const char letters[] = "tnvfr";
    const char *found = strchr(letters, letter);

    return found ? (uint32_t) "\t\n\v\f\r"[found - letters] : 0;
}

static peg_status read_letter(struct peg__pattern_reader *reader, char letter,
                              struct peg__token *token)
{
    token->letter = letter;
    token->negated = letter == 'B' || letter == 'P';
    if (control_of(letter)) {
        token->kind = PEG__TOKEN_CHAR;
        token->lo = control_of(letter);
        return PEG_OK;
    }
    if (is_among(letter, "dDwWsS")) {
        token->kind = PEG__TOKEN_SET;
        return PEG_OK;
    }
    if (letter == 'b' && reader->in_class) {
        token->kind = PEG__TOKEN_CHAR;
        token->lo = '\b';
        return PEG_OK;
    }
    if (letter == 'p' || letter == 'P')
        return read_property(reader, token);
    if (is_among(letter, "xuc"))
        return read_code(reader, letter, token);
    if (reader->in_class)
        return refuse_foreign(reader, letter, token->at);
    if (letter == 'b' || letter == 'B') {
        token->kind = PEG__TOKEN_BOUNDARY;
        return PEG_OK;
    }
    return letter == 'k' ? read_named_backref(reader, token)
                         : refuse_foreign(reader, letter, token->at);
}

peg_status peg__pattern_escape(struct peg__pattern_reader *reader, struct peg__token *token)
{
    const unsigned char next = byte_at(reader->text, reader->at + 1);

    token->at = reader->at;
    if (reader->at + 1 >= reader->text.len)
        return PEG__PATTERN_REFUSE(reader, token->at,
                                   "the pattern ends in a backslash; write \\\\ for a backslash");
    reader->at++;
    if (peg__is_digit(next) && next != '0' && !reader->in_class)
        return read_backref(reader, token);
    if (peg__is_digit(next) || peg__is_letter(next)) {
        reader->at++;
        if (next == '0')
            return read_code(reader, '0', token);
        if (peg__is_digit(next))
            return refuse_foreign(reader, (char)next, token->at);
        return read_letter(reader, (char)next, token);
    }
    token->kind = PEG__TOKEN_CHAR;
    if (!peg__pattern_utf8(reader->text, &reader->at, &token->lo))
        return PEG__PATTERN_REFUSE(reader, reader->at, "the pattern is not valid UTF-8");
    return PEG_OK;
}
