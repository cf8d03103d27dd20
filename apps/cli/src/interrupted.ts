/** Whoever was asked pressed Ctrl-C. */
export class Interrupted extends Error {}
