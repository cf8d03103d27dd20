import { limits, shape } from '@sandwire/protocol'
import { EMPTY, type Layout, type View } from './layout.ts'
import { leavesOf, type PaneTree } from './pane-tree.ts'

/** More than anybody opens; a layout of more is not ours. */
const MAX_TABS = 200
const MAX_DEPTH = 12

const id = shape.text(64)
const sandbox = shape.text(128)
/** Any file name: one that is no UTF-8 holds lone surrogates. */
const path: shape.Shape<string> = {
  decode: (value) => (typeof value === 'string' && value.length <= 4096 ? value : undefined),
  describe: 'path',
}
const cells = shape.whole(1, limits.MAX_CELLS)
const viewShapes = {
  terminal: shape.record({
    kind: shape.literal('terminal'),
    sandbox,
    session: shape.optional(shape.text(256)),
    drove: shape.optional(shape.bool),
    cwd: shape.optional(path),
    size: shape.optional(shape.record({ cols: cells, rows: cells })),
  }),
  file: shape.record({
    kind: shape.literal('file'),
    ...{ sandbox, path },
    line: shape.optional(shape.whole(1, 10_000_000)),
    column: shape.optional(shape.whole(1, 10_000_000)),
  }),
  unstaged: shape.record({
    kind: shape.literal('diff'),
    sandbox,
    path,
    of: shape.oneOf(['unstaged', 'staged']),
  }),
  commit: shape.record({
    kind: shape.literal('diff'),
    ...{ sandbox, path },
    of: shape.record({ commit: shape.text(64, /^[0-9a-f]+$/) }),
  }),
}
const outer = shape.record({
  tabs: shape.list(
    shape.record({ id, focus: id, name: shape.optional(shape.text(200)), panes: shape.text(20_000) }),
    MAX_TABS,
  ),
  active: shape.nullable(id),
  views: shape.text(1_000_000),
})

function decodeView(value: unknown): View | undefined {
  for (const decoder of Object.values(viewShapes)) {
    const view = decoder.decode(value)
    if (view !== undefined) return view
  }
  return undefined
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function decodePanes(value: unknown, depth = 0): PaneTree | undefined {
  if (!isRecord(value) || depth > MAX_DEPTH || typeof value['id'] !== 'string') return undefined
  if (value['kind'] === 'leaf') return { kind: 'leaf', id: value['id'] }
  const first = decodePanes(value['first'], depth + 1)
  const second = decodePanes(value['second'], depth + 1)
  const { direction, share } = value
  if (first === undefined || second === undefined) return first ?? second
  const isSplit =
    (direction === 'row' || direction === 'column') && typeof share === 'number' && share > 0 && share < 1
  return isSplit ? { kind: 'split', id: value['id'], direction, share, first, second } : first
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not ours, or of another version.
    return undefined
  }
}

/** A layout as it is kept in the browser. It says what was open, never with which credential. */
export function writeLayout({ tabs, active, views }: Layout): string {
  return JSON.stringify({
    tabs: tabs.map((tab) => ({ ...tab, panes: JSON.stringify(tab.panes) })),
    active: active ?? null,
    views: JSON.stringify(views),
  })
}

/** Reads a layout back. What cannot be understood is left out, so that a page always opens. */
export function readLayout(text: string | null): Layout {
  const stored = text === null ? undefined : outer.decode(parse(text))
  if (stored === undefined) return EMPTY
  const known = parse(stored.views)
  const views: Record<string, View> = {}
  for (const [key, value] of Object.entries(isRecord(known) ? known : {})) {
    const view = decodeView(value)
    if (view !== undefined) views[key] = view
  }
  const tabs = stored.tabs.flatMap(({ panes: text, ...tab }) => {
    const panes = decodePanes(parse(text))
    if (panes === undefined) return []
    const leaves = leavesOf(panes)
    if (leaves.some((view) => views[view] === undefined)) return []
    return [{ ...tab, panes, focus: leaves.includes(tab.focus) ? tab.focus : (leaves[0] ?? '') }]
  })
  const used = new Set(tabs.flatMap(({ panes }) => leavesOf(panes)))
  return {
    tabs,
    active: tabs.some((tab) => tab.id === stored.active) ? (stored.active ?? undefined) : tabs[0]?.id,
    views: Object.fromEntries(Object.entries(views).filter(([view]) => used.has(view))),
  }
}
