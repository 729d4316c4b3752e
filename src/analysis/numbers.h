/* How far ahead memory is fetched, in nodes, so that misses of the cache run side by side. */
#ifndef LP_ANALYSIS_NUMBERS_H
#define LP_ANALYSIS_NUMBERS_H

/* A search in breadth: the row of a node, then its edges.  Measured on 1.1 million nodes in random order of memory, 3.4 million
 * edges: 24 and 12 took 26 ns a node, 8 and 4 took 29; fetching what edges lead to as well took longer. */
#define LP_PATHS_ROW_AHEAD 24
#define LP_PATHS_EDGES_AHEAD 12

/* Rows that are copied in another order: the same; half of these took as long. */
#define LP_ARRANGE_ROW_AHEAD 48
#define LP_ARRANGE_EDGES_AHEAD 24

/* Semidominators: what is known of a node, and half as far its references.  72 ns a node where 78 were taken without. */
#define LP_DOMINATORS_AHEAD 16
#define LP_DOMINATORS_REFERENCES_AHEAD 8

/* Reference counts that edges lower; not measured apart. */
#define LP_GARBAGE_AHEAD 16

/* Objects that are read for a frozen graph, then what their size is read from; not measured apart. */
#define LP_FREEZE_OBJECT_AHEAD 24
#define LP_FREEZE_BLOCKS_AHEAD 8

#endif
