/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The names that ECMA-262 allows inside \p{...}, exactly as it spells them: PCRE2 ignores case
 * and underscores and knows more, and a pattern must not depend on that. Scripts are those of
 * Unicode 14, which is what PCRE2 10.42 has.
 */

#include "base/text/str.h"
#include "schema/pattern/internal.h"

/* Names are separated by one space, with one at each end. */
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

static const struct {
    const char *name;
    const char *pcre2;
} categories[] = {
    {"C", "C"},
    {"Other", "C"},
    {"Cc", "Cc"},
    {"Control", "Cc"},
    {"cntrl", "Cc"},
    {"Cf", "Cf"},
    {"Format", "Cf"},
    {"Cn", "Cn"},
    {"Unassigned", "Cn"},
    {"Co", "Co"},
    {"Private_Use", "Co"},
    {"Cs", "Cs"},
    {"Surrogate", "Cs"},
    {"L", "L"},
    {"Letter", "L"},
    {"LC", "L&"},
    {"Cased_Letter", "L&"},
    {"Ll", "Ll"},
    {"Lowercase_Letter", "Ll"},
    {"Lm", "Lm"},
    {"Modifier_Letter", "Lm"},
    {"Lo", "Lo"},
    {"Other_Letter", "Lo"},
    {"Lt", "Lt"},
    {"Titlecase_Letter", "Lt"},
    {"Lu", "Lu"},
    {"Uppercase_Letter", "Lu"},
    {"M", "M"},
    {"Mark", "M"},
    {"Combining_Mark", "M"},
    {"Mc", "Mc"},
    {"Spacing_Mark", "Mc"},
    {"Me", "Me"},
    {"Enclosing_Mark", "Me"},
    {"Mn", "Mn"},
    {"Nonspacing_Mark", "Mn"},
    {"N", "N"},
    {"Number", "N"},
    {"Nd", "Nd"},
    {"Decimal_Number", "Nd"},
    {"digit", "Nd"},
    {"Nl", "Nl"},
    {"Letter_Number", "Nl"},
    {"No", "No"},
    {"Other_Number", "No"},
    {"P", "P"},
    {"Punctuation", "P"},
    {"punct", "P"},
    {"Pc", "Pc"},
    {"Connector_Punctuation", "Pc"},
    {"Pd", "Pd"},
    {"Dash_Punctuation", "Pd"},
    {"Pe", "Pe"},
    {"Close_Punctuation", "Pe"},
    {"Pf", "Pf"},
    {"Final_Punctuation", "Pf"},
    {"Pi", "Pi"},
    {"Initial_Punctuation", "Pi"},
    {"Po", "Po"},
    {"Other_Punctuation", "Po"},
    {"Ps", "Ps"},
    {"Open_Punctuation", "Ps"},
    {"S", "S"},
    {"Symbol", "S"},
    {"Sc", "Sc"},
    {"Currency_Symbol", "Sc"},
    {"Sk", "Sk"},
    {"Modifier_Symbol", "Sk"},
    {"Sm", "Sm"},
    {"Math_Symbol", "Sm"},
    {"So", "So"},
    {"Other_Symbol", "So"},
    {"Z", "Z"},
    {"Separator", "Z"},
    {"Zl", "Zl"},
    {"Line_Separator", "Zl"},
    {"Zp", "Zp"},
    {"Paragraph_Separator", "Zp"},
    {"Zs", "Zs"},
    {"Space_Separator", "Zs"},
};

static bool lists(const char *names, size_t names_len, peg_str name)
{
    char wanted[48];

    if (name.len == 0 || name.len > sizeof(wanted) - 2 || memchr(name.ptr, ' ', name.len))
        return false;
    wanted[0] = ' ';
    memcpy(wanted + 1, name.ptr, name.len);
    wanted[name.len + 1] = ' ';
    return memmem(names, names_len, wanted, name.len + 2) != NULL;
}

static bool find_category(peg_str name, struct peg__token *token)
{
    for (size_t i = 0; i < sizeof(categories) / sizeof(categories[0]); i++) {
        if (!peg__str_is(name, categories[i].name))
            continue;
        token->name = categories[i].pcre2;
        token->name_len = strlen(categories[i].pcre2);
        return true;
    }
    return false;
}

static bool find_script(peg_str name, const char *prefix, struct peg__token *token)
{
    if (!lists(scripts, sizeof(scripts) - 1, name))
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
    if (!lists(binary_properties, sizeof(binary_properties) - 1, name))
        return find_category(name, token);
    token->name = name.ptr;
    token->name_len = name.len;
    return true;
}

bool peg__pattern_property(peg_str body, struct peg__token *token)
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
