//! Closed word classes, and hints at the open ones: what the tagger knows of single words.

/// A set of classes that a word may belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(super) struct Classes(u32);

impl Classes {
    pub(super) const DETERMINER: Self = Self(1);
    pub(super) const POSSESSIVE: Self = Self(1 << 1);
    /// Pronouns that can be a subject.
    pub(super) const SUBJECT: Self = Self(1 << 2);
    /// Pronouns that can be an object.
    pub(super) const OBJECT: Self = Self(1 << 3);
    pub(super) const PREPOSITION: Self = Self(1 << 4);
    /// Modal verbs and forms of "do" before a base form.
    pub(super) const MODAL: Self = Self(1 << 5);
    pub(super) const BE: Self = Self(1 << 6);
    pub(super) const HAVE: Self = Self(1 << 7);
    pub(super) const TO: Self = Self(1 << 8);
    pub(super) const CONJUNCTION: Self = Self(1 << 9);
    /// Adverbs that stand between subject and verb.
    pub(super) const ADVERB: Self = Self(1 << 10);
    /// Adverbs before an adjective.
    pub(super) const DEGREE: Self = Self(1 << 11);
    pub(super) const ADJECTIVE: Self = Self(1 << 12);
    /// Common verbs in the base form or the present tense.
    pub(super) const VERB: Self = Self(1 << 13);
    /// Verbs in the past tense.
    pub(super) const PAST: Self = Self(1 << 14);
    pub(super) const RELATIVE: Self = Self(1 << 15);
    /// "please", "let's": a base form follows.
    pub(super) const INVITING: Self = Self(1 << 16);
    pub(super) const NEGATION: Self = Self(1 << 17);
    pub(super) const NUMBER: Self = Self(1 << 18);
    /// "up", "out": part of the verb before.
    pub(super) const PARTICLE: Self = Self(1 << 19);
    /// Verbs with an object and a base form: "let", "make", "help", "see".
    pub(super) const CAUSATIVE: Self = Self(1 << 20);
    /// Question words that begin a clause.
    pub(super) const QUESTION: Self = Self(1 << 21);
    /// Verbs that describe their subject: "seem", "feel", "stay".
    pub(super) const LINKING: Self = Self(1 << 22);
    /// A word that says when in the past.
    pub(super) const LONG_AGO: Self = Self(1 << 23);
    /// A word that says how often.
    pub(super) const HABIT: Self = Self(1 << 24);

    /// Whether the two sets share a class.
    pub(super) fn any(self, of: Self) -> bool {
        self.0 & of.0 != 0
    }

    /// Whether no class is known: an open-class word, most often a noun.
    pub(super) fn is_open(self) -> bool {
        const HINTS: u32 = Classes::LONG_AGO.0 | Classes::HABIT.0;
        self.0 & !HINTS == 0
    }
}

impl std::ops::BitOr for Classes {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

const TABLE: &[(Classes, &str)] = &[
    (
        Classes::DETERMINER,
        "the a an this that these those each every any some no another either neither both all several many few \
         much more most less enough such what which whose other",
    ),
    (Classes::POSSESSIVE, "my your his her its our their whose mine yours one's someone's everyone's"),
    (
        Classes::SUBJECT,
        "i you he she it we they who one everyone everybody someone somebody anyone nobody people i'd you'd he'd \
         she'd we'd they'd there",
    ),
    (
        Classes::OBJECT,
        "me you him her it us them myself yourself himself herself itself ourselves themselves",
    ),
    (
        Classes::PREPOSITION,
        "of in on at by for with from about into onto over under through during between among against without \
         within across behind beyond near after before since until toward towards upon via despite like per along \
         around above below off out inside outside than as except besides plus throughout beside beneath amid unlike",
    ),
    (
        Classes::MODAL,
        "can could will would shall should may might must do does did can't cannot couldn't won't wouldn't shan't \
         shouldn't mightn't mustn't don't doesn't didn't i'll you'll he'll she'll it'll we'll they'll that'll \
         there'll who'll i'd you'd he'd she'd we'd they'd needn't gonna wanna gotta who'd what'll",
    ),
    (
        Classes::BE,
        "be am is are was were been being i'm you're he's she's it's we're they're that's there's isn't aren't \
         wasn't weren't ain't what's who's here's where's how's",
    ),
    (
        Classes::HAVE,
        "have has had having i've you've we've they've haven't hasn't hadn't who've could've would've should've",
    ),
    (Classes::TO, "to"),
    (
        Classes::CONJUNCTION,
        "and or but nor yet so because if when while although though unless whether then plus",
    ),
    (
        Classes::ADVERB,
        "not never always often usually sometimes rarely seldom ever also just only even still already really \
         actually simply probably certainly definitely surely perhaps maybe quickly slowly soon now then again \
         once twice almost nearly hardly barely currently recently finally eventually generally typically normally \
         fully easily carefully clearly directly immediately automatically both all each rather instead",
    ),
    (
        Classes::DEGREE,
        "very so too quite more most less least as extremely fairly pretty rather really how completely \
         totally perfectly almost nearly that well somewhat incredibly particularly highly entirely equally",
    ),
    (
        Classes::ADJECTIVE,
        "new old good bad big small great little long short high low large early late young right wrong same \
         different next last first second third own best better worst worse main real true false free full open easy \
         hard strong weak hot cold warm cool fresh clean dark light fast slow quick rich poor safe clear simple whole \
         single double public private local global recent current final common special certain possible important \
         red green blue black white brown grey gray yellow busy happy sad nice fine sharp deep wide narrow heavy thick \
         thin smooth rough quiet loud bright dry wet soft sweet dear former latter personal daily weekly monthly yearly \
         annual average total entire modern ancient official strict flat empty ready sure annoying missing",
    ),
    (
        Classes::VERB,
        "go goes get gets make makes take takes come comes see sees know knows want wants give gives find finds tell \
         tells ask asks work works seem seems feel feels try tries leave leaves call calls keep keeps put puts need \
         needs begin begins show shows hear hears play plays run runs move moves like likes believe believes hold holds \
         bring brings happen happens write writes sit sits stand stands lose loses pay pays meet meets include includes \
         continue continues learn learns change changes watch watches follow follows stop stops speak speaks eat eats \
         grow grows open opens walk walks win wins teach teaches offer offers remember remembers love loves buy buys wait \
         waits die dies send sends build builds stay stays fall falls cut cuts reach reaches kill kills raise raises pass \
         passes sell sells require requires report reports decide decides pull pulls start starts check checks choose \
         chooses say says think thinks add adds help helps let lets create creates avoid avoids enjoy enjoys hate hates \
         prefer prefers drink drinks sing sings drive drives read reads listen listens look looks pick picks save saves \
         hope hopes ensure ensures allow allows apply applies click clicks press presses",
    ),
    (
        Classes::PAST,
        "went got made took came saw knew wanted gave found told asked worked seemed felt tried left called kept \
         needed began showed heard played ran moved liked lived believed held brought happened wrote sat stood lost \
         paid met included continued learned changed watched followed stopped spoke ate grew opened walked won taught \
         offered remembered loved bought waited died sent built stayed fell reached killed raised passed sold decided \
         pulled started said thought added helped created drank sang drove looked picked saved hoped woke broke chose \
         slept threw drew flew forgot understood became was were had did wore rose swam rang hid hit shut finished",
    ),
    (Classes::RELATIVE, "who which that whom"),
    (Classes::INVITING, "please let's lets kindly"),
    (Classes::NEGATION, "not never don't doesn't didn't won't can't cannot"),
    (
        Classes::NUMBER,
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen \
         eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion zero",
    ),
    (Classes::PARTICLE, "up out down off away back along through over around apart together aside"),
    (
        Classes::CAUSATIVE,
        "let lets make makes made help helps helped see saw watch watched hear heard have had making helping letting",
    ),
    (Classes::QUESTION, "what which who when where why how whose if because although while when whether"),
    (
        Classes::LINKING,
        "seem seems seemed feel feels felt stay stays stayed remain remains remained become becomes became get gets got \
         look looks looked sound sounds sounded keep keeps kept come comes came go goes went sit sits sat stand stands \
         stood draw draws drew grow grows grew live lives lived move moves moved stick sticks stuck staying getting coming \
         standing sitting feeling going being keeping hold holds held turn turned stays broadcast perform performed \
         performing streaming stream streamed appear appears appeared fly flew pull pulled follow followed",
    ),
    (
        Classes::LONG_AGO,
        "yesterday ago last earlier previously once already recently then before formerly when tonight",
    ),
    (
        Classes::HABIT,
        "always often usually sometimes rarely every daily never generally typically normally frequently \
         occasionally still regularly whenever weekly seldom",
    ),
];

/// What is known of a lower-case word.
pub(super) fn classes(word: &str) -> Classes {
    let mut found = Classes::default();
    for (class, words) in TABLE {
        if words.split_ascii_whitespace().any(|w| w == word) {
            found = found | *class;
        }
    }
    if found != Classes::default() {
        return found;
    }
    let ends = |suffixes: &[&str]| suffixes.iter().any(|s| word.len() > s.len() + 1 && word.ends_with(s));
    if ends(&["n't", "'ll", "'d"]) {
        found = found | Classes::MODAL;
    } else if ends(&["'ve"]) {
        found = found | Classes::HAVE;
    } else if ends(&["'re", "'m"]) {
        found = found | Classes::BE;
    } else if word.len() > 4
        && ends(&["ly"])
        && !["family", "reply", "supply", "apply", "italy"].contains(&word)
    {
        found = found | Classes::ADVERB;
    } else if ends(&["ous", "ful", "ive", "ical", "able", "ible", "less", "ish", "ular", "ional"]) {
        found = found | Classes::ADJECTIVE;
    } else if word.len() > 4 && ends(&["ed"]) && !ends(&["eed", "bed", "red", "shed"]) {
        found = found | Classes::PAST;
    } else if !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit() || b == b',' || b == b'.') {
        found = found | Classes::NUMBER;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_their_classes() {
        assert!(classes("her").any(Classes::POSSESSIVE) && classes("her").any(Classes::OBJECT));
        assert!(classes("quickly").any(Classes::ADVERB) && !classes("family").any(Classes::ADVERB));
        assert!(classes("jumped").any(Classes::PAST) && classes("table").is_open());
        assert!(classes("shouldn't").any(Classes::MODAL));
        assert!(classes("1,000").any(Classes::NUMBER));
    }
}
