/* Sites: the same stack is the same site, dead code gives its address back, children and equal texts count together. */
#include "harness.h"

#include <string.h>

#include "ledger/site.h"

/* A code object of the test: its line is first_line + offset / 2 / 10, so that several offsets share a line. */
typedef struct code {
    const char *filename, *function;
    uint32_t first_line;
    int own;
} code;

static void names(const void *pointer, uint32_t offset, char *filename, size_t filename_bytes, char *function,
                  size_t function_bytes) {
    (void)offset;
    const code *c = pointer;
    snprintf(filename, filename_bytes, "%s", c->filename);
    snprintf(function, function_bytes, "%s", c->function);
}

static uint32_t line(const void *pointer, uint32_t offset) { return ((const code *)pointer)->first_line + offset / 20; }

static int is_own(const void *pointer) { return ((const code *)pointer)->own; }

static code train = {"train.py", "train", 10, 0}, model = {"model.py", "forward", 50, 0},
            probe = {"probe.py", "step", 1, 1};

static lp_site_id site_of(const void *a, uint32_t a_offset, const void *b, uint32_t b_offset) {
    lp_raw_frame frames[2] = {{a, a_offset}, {b, b_offset}};
    return lp_site_intern(frames, b == NULL ? 1 : 2);
}

static void test_the_same_stack_is_the_same_site(void) {
    lp_site_id a = site_of(&train, 40, &model, 20);
    CHECK(a >= LP_SITE_FIRST && a == site_of(&train, 40, &model, 20));
    CHECK(a != site_of(&train, 40, &model, 40) && a != site_of(&train, 60, &model, 20) &&
          a != site_of(&train, 40, NULL, 0));
    lp_frame_text text[4];
    CHECK(lp_site_text(a, text, 4) == 2);
    CHECK(strcmp(text[0].filename, "train.py") == 0 && text[0].lineno == 12 && strcmp(text[0].function, "train") == 0);
    CHECK(strcmp(text[1].filename, "model.py") == 0 && text[1].lineno == 51);
    CHECK(lp_site_text(a, text, 1) == 1 && lp_site_text(LP_SITE_NATIVE, text, 4) == 0);
}

static void test_special_sites(void) {
    lp_frame_text text[4];
    CHECK(lp_site_intern(NULL, 0) == LP_SITE_NATIVE);
    CHECK(site_of(&probe, 0, &train, 0) == LP_SITE_SELF);
    lp_site_id below = site_of(&train, 0, &probe, 0);
    CHECK(below >= LP_SITE_FIRST && lp_site_text(below, text, 4) == 1);
    CHECK(lp_site_base(LP_SITE_OVERFLOW) == LP_SITE_OVERFLOW);
}

static void test_dead_code_keeps_its_text_and_frees_its_address(void) {
    code first = {"a.py", "f", 1, 0};
    lp_site_id before = site_of(&first, 0, NULL, 0);
    CHECK(lp_site_code_dies(&first) == 1 && lp_site_code_dies(&first) == 0);
    first = (code){"b.py", "g", 7, 0};
    lp_site_id after = site_of(&first, 0, NULL, 0);
    lp_frame_text text[1];
    CHECK(before != after);
    CHECK(lp_site_text(before, text, 1) == 1 && strcmp(text[0].filename, "a.py") == 0);
    CHECK(lp_site_text(after, text, 1) == 1 && strcmp(text[0].filename, "b.py") == 0 && text[0].lineno == 7);
}

static void test_instructions_of_one_line_count_together(void) {
    lp_site_id a = site_of(&train, 100, &model, 20), b = site_of(&train, 102, &model, 22),
               c = site_of(&train, 120, &model, 20);
    CHECK(a != b && lp_site_base(a) == lp_site_base(b) && lp_site_base(a) != lp_site_base(c));
    lp_site_set_deep(lp_site_base(a));
    CHECK(lp_site_is_deep(a) && lp_site_is_deep(b) && !lp_site_is_deep(c));
}

static void test_a_line_with_many_stacks_is_deep_no_more(void) {
    lp_site_id base = site_of(&train, 300, NULL, 0);
    lp_raw_frame stack[2] = {{&train, 300}, {&model, 0}};
    lp_site_set_deep(base);
    for (uint32_t i = 0; i < UINT8_MAX; i++) {
        CHECK(lp_site_is_deep(base));
        stack[1].offset = 2 * i;
        lp_site_intern_child(base, stack, 2);
    }
    CHECK(!lp_site_is_deep(base));
    lp_site_set_deep(base);
    CHECK(!lp_site_is_deep(base));
}

static void test_generated_code_counts_together_whatever_its_number(void) {
    code first = {"<made.3>", "f", 1, 0}, later = {"<made.1204>", "f", 1, 0}, other = {"<made.3>", "f", 2, 0};
    code file = {"made.3.py", "f", 1, 0}, another = {"made.4.py", "f", 1, 0};
    lp_site_id base = lp_site_base(site_of(&first, 0, &train, 0)), site = site_of(&later, 0, &train, 0);
    lp_frame_text text[2];
    CHECK(site != base && lp_site_base(site) == base && lp_site_base(site_of(&other, 0, &train, 0)) != base);
    CHECK(lp_site_text(site, text, 2) == 2 && strcmp(text[0].filename, "<made.1204>") == 0);
    CHECK(lp_site_base(site_of(&file, 0, &train, 0)) != lp_site_base(site_of(&another, 0, &train, 0)));
    code *all[] = {&first, &later, &other, &file, &another};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        lp_site_code_dies(all[i]);
    }
}

static void test_children(void) {
    lp_site_id base = site_of(&train, 200, NULL, 0);
    lp_raw_frame stack[3] = {{&train, 200}, {&model, 0}, {&model, 20}};
    lp_site_id child = lp_site_intern_child(base, stack, 3);
    stack[2].offset = 40;
    lp_site_id other = lp_site_intern_child(base, stack, 3);
    CHECK(child != other && child != lp_site_intern(stack, 3));
    CHECK(lp_site_base(child) == base && lp_site_base(other) == base);
    CHECK(lp_site_first_child(base) == child && lp_site_next_child(child) == other && lp_site_next_child(other) == 0);
}

static void test_many_sites(void) {
    static code codes[2000];
    static lp_site_id ids[2000];
    for (uint32_t i = 0; i < 2000; i++) {
        codes[i] = (code){"many.py", "f", i, 0};
        ids[i] = site_of(&codes[i], 0, &train, 0);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        lp_frame_text text[2];
        CHECK(site_of(&codes[i], 0, &train, 0) == ids[i]);
        CHECK(lp_site_text(ids[i], text, 2) == 2 && text[0].lineno == i);
    }
    for (uint32_t i = 0; i < 2000; i += 2) {
        CHECK(lp_site_code_dies(&codes[i]) == 1);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        CHECK(site_of(&codes[i], 0, &train, 0) == ids[i]);
        CHECK(lp_site_base(site_of(&codes[i], 0, &train, 0)) == lp_site_base(ids[i]));
    }
}

int main(void) {
    lp_site_resolver resolver = {names, line, is_own, NULL, NULL};
    CHECK(lp_site_init(&resolver) == LP_OK);
    test_the_same_stack_is_the_same_site();
    test_special_sites();
    test_dead_code_keeps_its_text_and_frees_its_address();
    CHECK(lp_site_is_valid());
    test_instructions_of_one_line_count_together();
    CHECK(lp_site_is_valid());
    test_a_line_with_many_stacks_is_deep_no_more();
    test_generated_code_counts_together_whatever_its_number();
    test_children();
    CHECK(lp_site_is_valid());
    test_many_sites();
    CHECK(lp_site_overflow_count() == 0 && lp_site_is_valid());
    return 0;
}
