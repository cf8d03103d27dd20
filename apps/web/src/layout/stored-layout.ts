import { limits, schema } from '@sandwire/protocol'
import { EMPTY, type Layout, tabNameOf, type Tab, type View } from './layout.ts'
import { leavesOf, MAX_DEPTH, type PaneTree } from './pane-tree.ts'

const id = schema.text(64)
const sandbox = schema.text(128)
/** File names that are not UTF-8 hold lone surrogates. */
const path: schema.Schema<string> = {
  decode: (value) => (typeof value === 'string' && value.length <= 4096 ? value : undefined),
  describe: 'path',
}
const cells = schema.integer(1, limits.MAX_CELLS)

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Decodes a record, ignoring unknown fields and invalid optional ones. */
function forgiving<const F extends Readonly<Record<string, schema.Schema<unknown>>>>(fields: F) {
  const strict = schema.record(fields)
  const isUsable = ([name, value]: readonly [string, unknown]): boolean => {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined
    return field !== undefined && (field.optional !== true || field.decode(value) !== undefined)
  }
  return (value: unknown) =>
    isRecord(value) ? strict.decode(Object.fromEntries(Object.entries(value).filter(isUsable))) : undefined
}

const decoders = [
  forgiving({
    kind: schema.literal('terminal'),
    sandbox,
    session: schema.optional(schema.text(256)),
    hadControl: schema.optional(schema.bool),
    cwd: schema.optional(path),
    size: schema.optional(schema.record({ cols: cells, rows: cells })),
  }),
  forgiving({ kind: schema.literal('tmux'), sandbox }),
  forgiving({ kind: schema.literal('run'), sandbox, run: schema.text(64), title: schema.text(64) }),
  forgiving({
    kind: schema.literal('conversation'),
    sandbox,
    conversation: schema.text(128),
    title: schema.text(64),
  }),
  forgiving({
    kind: schema.literal('file'),
    sandbox,
    path,
    line: schema.optional(schema.integer(1, 1e7)),
    column: schema.optional(schema.integer(1, 1e7)),
  }),
  forgiving({
    kind: schema.literal('diff'),
    sandbox,
    path,
    of: schema.oneOf(['unstaged', 'staged']),
    repo: schema.optional(path),
    from: schema.optional(path),
  }),
  forgiving({
    kind: schema.literal('diff'),
    sandbox,
    path,
    of: schema.record({ commit: schema.text(64, /^[0-9a-f]+$/) }),
    repo: schema.optional(path),
    from: schema.optional(path),
  }),
]

function decodeView(value: unknown): View | undefined {
  for (const decode of decoders) {
    const view = decode(value)
    if (view !== undefined) return view
  }
  return undefined
}

type Views = Readonly<Record<string, View>>

function decodeViews(value: unknown): Views {
  const known = Object.entries(isRecord(value) ? value : {})
  return Object.fromEntries(
    known.flatMap(([key, stored]) => {
      const view = decodeView(stored)
      return view === undefined ? [] : [[key, view]]
    }),
  )
}

/** Drops panes of unknown views; their siblings take the space. */
function decodePanes(value: unknown, views: Views, depth = 0): PaneTree | undefined {
  if (!isRecord(value) || depth > MAX_DEPTH || typeof value['id'] !== 'string') return undefined
  const { id: own, kind, direction, share } = value
  if (kind === 'leaf') return Object.hasOwn(views, own) ? { kind, id: own } : undefined
  const first = decodePanes(value['first'], views, depth + 1)
  const second = decodePanes(value['second'], views, depth + 1)
  if (first === undefined || second === undefined) return first ?? second
  const isShare = typeof share === 'number' && share > 0 && share < 1
  return {
    kind: 'split',
    id: own,
    first,
    second,
    direction: direction === 'column' ? 'column' : 'row',
    share: isShare ? share : 0.5,
  }
}

function decodeTab(value: unknown, views: Views): Tab | undefined {
  const own = isRecord(value) ? id.decode(value['id']) : undefined
  if (!isRecord(value) || own === undefined) return undefined
  const panes = decodePanes(parse(value['panes']), views)
  if (panes === undefined) return undefined
  const leaves = leavesOf(panes)
  const name = typeof value['name'] === 'string' ? tabNameOf(value['name']) : ''
  return {
    id: own,
    panes,
    focus: leaves.find((leaf) => leaf === value['focus']) ?? leaves[0] ?? '',
    ...(name === '' ? {} : { name }),
  }
}

function parse(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined
  } catch {
    // Not ours, or of another version.
    return undefined
  }
}

/** Serializes a layout for browser storage. It never contains credentials. */
export function writeLayout({ tabs, active, views }: Layout): string {
  return JSON.stringify({
    tabs: tabs.map((tab) => ({ ...tab, panes: JSON.stringify(tab.panes) })),
    active: active ?? null,
    views: JSON.stringify(views),
  })
}

/** Reads a stored layout. Invalid parts are dropped one by one. */
export function readLayout(text: string | null): Layout {
  const stored = parse(text)
  if (!isRecord(stored) || !Array.isArray(stored['tabs'])) return EMPTY
  const views = decodeViews(parse(stored['views']))
  const tabs = stored['tabs'].flatMap((tab: unknown) => decodeTab(tab, views) ?? [])
  const used = new Set(tabs.flatMap(({ panes }) => leavesOf(panes)))
  return {
    tabs,
    active: (tabs.find((tab) => tab.id === stored['active']) ?? tabs[0])?.id,
    views: Object.fromEntries(Object.entries(views).filter(([view]) => used.has(view))),
  }
}
