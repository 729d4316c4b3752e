#include "python/watch/states.h"

/* One more than the state that follows, so that what the table leaves out is 0: no such transition. */
#define TO(state) (LP_WATCH_##state + 1)

static const unsigned char table[LP_WATCH_STATE_COUNT][LP_WATCH_EVENT_COUNT] = {
    [LP_WATCH_NEW] = {[LP_WATCH_EVENT_ENTER] = TO(ENTERING), [LP_WATCH_EVENT_STOP] = TO(OFF)},
    [LP_WATCH_DISABLED] = {[LP_WATCH_EVENT_ENTER] = TO(ENTERING), [LP_WATCH_EVENT_STOP] = TO(DISABLED)},
    [LP_WATCH_ENTERING] = {[LP_WATCH_EVENT_DONE] = TO(ON),
                           [LP_WATCH_EVENT_DISABLE] = TO(DISABLED),
                           [LP_WATCH_EVENT_FAIL] = TO(LEAVING),
                           [LP_WATCH_EVENT_STOP] = TO(ENDING)},
    [LP_WATCH_ON] = {[LP_WATCH_EVENT_MARK] = TO(MARKING), [LP_WATCH_EVENT_STOP] = TO(LEAVING)},
    /* A mark that raises leaves the watch on: it is the program's to end it. */
    [LP_WATCH_MARKING] = {[LP_WATCH_EVENT_DONE] = TO(ON),
                          [LP_WATCH_EVENT_FAIL] = TO(ON),
                          [LP_WATCH_EVENT_STOP] = TO(ENDING)},
    [LP_WATCH_ENDING] = {[LP_WATCH_EVENT_DONE] = TO(LEAVING),
                         [LP_WATCH_EVENT_DISABLE] = TO(OFF),
                         [LP_WATCH_EVENT_FAIL] = TO(LEAVING),
                         [LP_WATCH_EVENT_STOP] = TO(ENDING)},
    /* What can't be given back for want of memory stays held: the next stop() or watch tries again. */
    [LP_WATCH_LEAVING] = {[LP_WATCH_EVENT_DONE] = TO(OFF),
                          [LP_WATCH_EVENT_FAIL] = TO(LEAVING),
                          [LP_WATCH_EVENT_STOP] = TO(LEAVING)},
    [LP_WATCH_OFF] = {[LP_WATCH_EVENT_STOP] = TO(OFF)},
};

lp_watch_state lp_watch_next(lp_watch_state state, lp_watch_event event) {
    unsigned char next = table[state][event];
    return next == 0 ? LP_WATCH_STATE_COUNT : (lp_watch_state)(next - 1);
}

int lp_watch_is_active(lp_watch_state state) {
#define IS_ACTIVE(name, is_active, meaning) [LP_WATCH_##name] = is_active,
    static const unsigned char active[] = {LP_WATCH_STATES(IS_ACTIVE)};
#undef IS_ACTIVE
    return active[state];
}

const char *lp_watch_state_name(lp_watch_state state) {
#define NAME(name, is_active, meaning) [LP_WATCH_##name] = #name,
    static const char *const names[] = {LP_WATCH_STATES(NAME)};
#undef NAME
    return names[state];
}
