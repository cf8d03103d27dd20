import type { Change, StatusEntry } from './status-parser.ts'

/** How the contract says what became of a file: conflict, deleted, added, modified, untracked. */
export type ContractStatus = 'C' | 'D' | 'A' | 'M' | 'U'

/** The one that counts when a path has two. */
const PRIORITY: Readonly<Record<ContractStatus, number>> = { C: 5, D: 4, A: 3, M: 2, U: 1 }

const OF_CHANGE: Readonly<Record<Change, ContractStatus>> = { M: 'M', T: 'M', A: 'A', D: 'D', R: 'M', C: 'A' }

function statusOf(entry: StatusEntry): ContractStatus {
  switch (entry.kind) {
    case 'conflict':
      return 'C'
    case 'untracked':
      return 'U'
    case 'changed':
      return OF_CHANGE[entry.staged ?? entry.unstaged ?? 'M']
  }
}

/** Git tells conflicts behind all other changes; the contract has them where their paths are among them. */
function inOrderOfPaths(entries: readonly StatusEntry[]): readonly StatusEntry[] {
  if (!entries.some(({ kind }) => kind === 'conflict')) return entries
  const byPath = (left: StatusEntry, right: StatusEntry): number =>
    Buffer.compare(Buffer.from(left.path), Buffer.from(right.path))
  const isTracked = ({ kind }: StatusEntry): boolean => kind !== 'untracked'
  return [...entries.filter(isTracked).toSorted(byPath), ...entries.filter((entry) => !isTracked(entry))]
}

/** Files by path, as the contract has them. */
export function toContractFiles(entries: readonly StatusEntry[]): ReadonlyMap<string, ContractStatus> {
  const files = new Map<string, ContractStatus>()
  for (const entry of inOrderOfPaths(entries)) {
    const status = statusOf(entry)
    const known = files.get(entry.path)
    if (known === undefined || PRIORITY[status] > PRIORITY[known]) files.set(entry.path, status)
  }
  return files
}
