import { expect, test } from 'bun:test'
import { type StatusEntry, StatusParser } from './status.ts'

const [OID, NONE] = ['a'.repeat(40), '0'.repeat(40)]
const OIDS = `${OID} ${NONE}`
const MODES = '100644 100644 100644'

function parse(...tokens: readonly (string | Uint8Array)[]): {
  parser: StatusParser
  entries: StatusEntry[]
} {
  const parser = new StatusParser()
  const entries = tokens.flatMap((token) => parser.push(Buffer.from(token)) ?? [])
  return { parser, entries }
}

test('reads HEAD', () => {
  const { parser, entries } = parse(
    `# branch.oid ${OID}`,
    '# branch.head main with\u{202e}marks',
    '# branch.upstream origin/main',
    '# branch.ab +2 -13',
    '# stash 4',
  )
  expect(parser.head).toEqual({
    oid: OID,
    branch: 'main with\u{202e}marks',
    upstream: 'origin/main',
    ahead: 2,
    behind: 13,
  })
  expect(entries).toEqual([])
  expect(parse('# branch.oid (initial)', '# branch.head (detached)').parser.head).toEqual({})
})

test('reads changes, renames, conflicts, submodules and untracked files, with any name', () => {
  const { entries } = parse(
    `1 .M N... ${MODES} ${OIDS} with space\nand newline`,
    `2 RM N... ${MODES} ${OIDS} R100 -to`,
    '1 .M N... from',
    `u UU N... ${MODES} 100644 ${OIDS} ${OID} both`,
    `1 .M SC.. 160000 160000 160000 ${OIDS} module`,
    Buffer.from([0x3f, 0x20, 0xff, 0x2f]),
    '! ignored',
  )
  const rest = { isSubmodule: false, kind: 'changed' } as const
  expect(entries).toEqual([
    { ...rest, path: 'with space\nand newline', staged: null, unstaged: 'M' },
    { ...rest, path: '-to', from: '1 .M N... from', staged: 'R', unstaged: 'M' },
    { kind: 'conflict', path: 'both', sides: 'UU' },
    { ...rest, path: 'module', staged: null, unstaged: 'M', isSubmodule: true },
    { kind: 'untracked', path: '\u{dcff}/' },
  ])
})

test('tolerates a truncated record', () => {
  for (const token of ['', '1', '1 ', '2 R', 'u', '?', '#', '# branch.ab x'])
    expect(() => parse(token, token, token)).not.toThrow()
})
