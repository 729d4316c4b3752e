/* The states of a watch and what leads from one to the next: one table, in watch/states.c. */
#ifndef LP_WATCH_STATES_H
#define LP_WATCH_STATES_H

/* X(name, is_active, meaning) */
#define LP_WATCH_STATES(X)                                                                                             \
    X(NEW, 0, "made and not entered")                                                                                  \
    X(DISABLED, 0, "entered with leakprobe switched off: all it does is nothing")                                      \
    X(ENTERING, 0, "takes its resources")                                                                              \
    X(ON, 1, "watches the program's step")                                                                             \
    X(MARKING, 1, "a mark, a look or a report is under way")                                                           \
    X(ENDING, 0, "was told to end in the middle of entering or marking, and will once that is done")                   \
    X(LEAVING, 0, "gives its resources back")                                                                          \
    X(OFF, 0, "holds nothing")

/* X(name, meaning) */
#define LP_WATCH_EVENTS(X)                                                                                             \
    X(ENTER, "the program enters the watch")                                                                           \
    X(DISABLE, "there is nothing to take")                                                                             \
    X(MARK, "a mark, a look or a report begins")                                                                       \
    X(DONE, "what was under way has been done")                                                                        \
    X(FAIL, "what was under way raised")                                                                               \
    X(STOP, "the watch is to end: __exit__(), stop(), or nobody can reach it any more")

#define LP_WATCH_STATE_NAME(name, is_active, meaning) LP_WATCH_##name,
#define LP_WATCH_EVENT_NAME(name, meaning) LP_WATCH_EVENT_##name,
typedef enum lp_watch_state { LP_WATCH_STATES(LP_WATCH_STATE_NAME) LP_WATCH_STATE_COUNT } lp_watch_state;
typedef enum lp_watch_event { LP_WATCH_EVENTS(LP_WATCH_EVENT_NAME) LP_WATCH_EVENT_COUNT } lp_watch_event;
#undef LP_WATCH_STATE_NAME
#undef LP_WATCH_EVENT_NAME

/* The state after an event; LP_WATCH_STATE_COUNT where the event has no place. */
lp_watch_state lp_watch_next(lp_watch_state state, lp_watch_event event);
int lp_watch_is_active(lp_watch_state state);
const char *lp_watch_state_name(lp_watch_state state);

#endif
