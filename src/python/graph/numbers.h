/* Numbers of this folder that decide who keeps what grows, and where a cycle begins to be told; and that bound work. */
#ifndef LP_GRAPH_NUMBERS_H
#define LP_GRAPH_NUMBERS_H

/* Birth steps of members that make a container their holder: what one or two steps bring is their batch.  In so many
 * steps modules must have been made, too, for sys.modules to grow.  Not varied. */
#define LP_COLLECTORS_STEPS 3

/* How much an edge of a cycle tells, the least first: hooks, what was handed to torch, what is not known, then links
 * that every graph has. */
enum {
    LP_TELLS_HOOK,
    LP_TELLS_GIVEN,
    LP_TELLS_OTHER,
    LP_TELLS_NEXT,
    LP_TELLS_VARIABLE,
    LP_TELLS_GRAD_FN,
    LP_TELLS_NOTHING
};
/* How well a cycle is told from an object, the best last. */
enum { LP_SEED_NONE, LP_SEED_CONTAINER, LP_SEED_BUILT_IN, LP_SEED_INSTANCE, LP_SEED_TENSOR };

/* Members of a cycle that are compared for where its telling begins.  Bounds work. */
#define LP_CYCLE_COMPARED 4096u
/* A view without gaps that is at least half of what it lies in is an alias of it, and not a part. */
#define LP_MOST_OF_HALVES 2u
/* Words of an lru_cache before those that are looked for. */
#define LP_LRU_HEAD_WORDS 4
/* In a pattern, keys of a dict with more are not told apart, nor names below which there are members.  Bounds work. */
#define LP_KEYS_TOLD_APART 64
/* Nor attributes of an object with more, which is a table by another name.  Bounds work. */
#define LP_NAMES_TOLD_APART 4096
/* Characters of a name that are shown, of a function's or a type's, and of tuples in a key so many levels. */
#define LP_NAME_WIDTH 80
#define LP_FUNCTION_WIDTH 60
#define LP_KEY_DEPTH 2
/* Bytes of the name of a reference, and of its kind. */
#define LP_NAME_BYTES 160
#define LP_EDGE_BYTES 32
/* Holders whose pattern is looked at; the rest, smaller ones, go to those they are like: made by the same line, and of
 * the same types so far up.  Bounds work. */
#define LP_HOLDERS_NAMED 4096u
#define LP_ALIKE_LEVELS 4u
/* Elements of a path that make its pattern, and that are shown; entries that are.  Bounds work. */
#define LP_PATTERN_MOST 48u
#define LP_TRACE_MOST_ELEMENTS 40
#define LP_TRACE_MOST_ENTRIES 64
/* Holders with a bound, and copies of them, that a trace looks past; and how often it looks.  Bound work: one more is
 * an entry of its own, as if nobody else had what it keeps. */
#define LP_TRACE_BOUNDED 64
#define LP_TRACE_ROUNDS 4
/* One node in so many remembers its root: a quarter of a byte a node, and ways up of some 64 nodes.  Bounds work. */
#define LP_ROOT_KNOWN_EACH 64
/* Of two members of a size the one nearer to a root is shown; so far they are compared.  Bounds work. */
#define LP_DEPTH_MOST 64u
/* So many objects of one class in a row are links of a chain: two are a part and its whole.  Whether most members lie
 * behind some is decided by so many at least: their majority is wrong one time in six where three fifths do, one in 500
 * where three quarters do. */
#define LP_LINKS_OF_CHAIN 3u
#define LP_MEMBERS_TO_DECIDE 32u
/* The nodes at both ends of a path, beside those between. */
#define LP_PATH_ENDS 2
/* Paths that keep one object.  Bounds work. */
#define LP_RETENTION_MOST 64

/* Nodes that are passed on the ways up of long paths before no more of them are named in one graph: enough for 100
 * paths in a list of a million.  Bounds work. */
#define LP_NAMED_STEPS (1u << 26)

/* Bytes for each node, and each edge, beside the walk: of the searches of a trace; of components, owners and their
 * search, taken where there is garbage; of paths to one object. */
#define LP_TRACE_NODE_BYTES 16
#define LP_COMPONENTS_NODE_BYTES 36
#define LP_RETENTION_NODE_BYTES 16
#define LP_RETENTION_EDGE_BYTES 4

#endif
