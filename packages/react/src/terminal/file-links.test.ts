import { Unicode11Addon } from '@xterm/addon-unicode11'
import { Terminal } from '@xterm/headless'
import { expect, test } from 'bun:test'
import { fileLinks, findFileLocations, readLine, parseWorkingDirectory } from './file-links.ts'

async function draw(text: string, cols: number): Promise<Terminal> {
  const terminal = new Terminal({ cols, rows: 10, allowProposedApi: true })
  terminal.loadAddon(new Unicode11Addon())
  terminal.unicode.activeVersion = '11'
  await new Promise<void>((resolve) => terminal.write(text, resolve))
  return terminal
}

/** The first link of a logical line: its location and cells. */
function firstLink(terminal: Terminal, y: number): unknown {
  const line = readLine(terminal.buffer.active, y)
  const [found] = findFileLocations(line.text)
  if (found === undefined) return undefined
  const [start, end] = [line.places[found.at], line.places[found.at + found.length - 1]]
  return [found.place.path, [start?.from, start?.y], [end?.to, end?.y]]
}

const places = (text: string) => findFileLocations(text).map(({ place }) => place)

test('finds the locations that compilers and tools print', () => {
  expect(places('src/main.ts:12:5 - error TS2304')).toEqual([{ path: 'src/main.ts', line: 12, column: 5 }])
  expect(places('  at file (./a/b.js:3)')).toEqual([{ path: './a/b.js', line: 3 }])
  expect(places('modified:   README.md')).toEqual([{ path: 'README.md' }])
  expect(places('/home/user/workspace/x.c')).toEqual([{ path: '/home/user/workspace/x.c' }])
})

test('ignores words, versions and URLs', () => {
  expect(places('hello world 1.2.3 done.')).toEqual([])
  expect(places('https://example.com/a/b.html')).toEqual([])
  expect(places('user@host.example')).toEqual([])
})

test('reports positions in the line', () => {
  expect(findFileLocations('see a/b.ts now')).toEqual([{ at: 4, length: 6, place: { path: 'a/b.ts' } }])
})

test('is fast on a line of garbage', () => {
  expect(places(`${'a/'.repeat(100_000)}`).length).toBeLessThan(2)
})

test('accepts letters of all scripts', () => {
  expect(places('src/café.ts:3:1 и доки/файл.md')).toEqual([
    { path: 'src/café.ts', line: 3, column: 1 },
    { path: 'доки/файл.md' },
  ])
  expect(places('cafe\u{301}/naïve.py')).toEqual([{ path: 'cafe\u{301}/naïve.py' }])
})

test('counts the cells of wide characters', async () => {
  const terminal = await draw('漢字🙂 a.ts', 20)
  expect(firstLink(terminal, 0)).toEqual(['a.ts', [8, 1], [11, 1]])
})

test('finds a wrapped path from each of its rows', async () => {
  const terminal = await draw('first\r\nin src/deeply/nested/folder/main.ts:3 it\r\nlast', 12)
  for (const y of [1, 2, 3]) {
    expect(firstLink(terminal, y)).toEqual(['src/deeply/nested/folder/main.ts', [4, 2], [1, 5]])
  }
  expect(firstLink(terminal, 0)).toBeUndefined()
  expect(firstLink(terminal, 5)).toBeUndefined()
})

test('finds a path whose wide character wrapped early', async () => {
  const terminal = await draw('see a/b漢字.ts', 8)
  expect(firstLink(terminal, 0)).toEqual(['a/b漢字.ts', [5, 1], [7, 2]])
})

test('are links only while the page opens files', async () => {
  const terminal = await draw('see a/b.ts now', 40)
  let opensFiles = false
  const nothing = () => {}
  const provider = fileLinks(terminal, {
    activate: nothing,
    hover: nothing,
    leave: nothing,
    opensFiles: () => opensFiles,
  })
  const linksNow = () => {
    const found: (string[] | undefined)[] = []
    provider.provideLinks(1, (links) => found.push(links?.map(({ text }) => text)))
    return found
  }
  expect(linksNow()).toEqual([undefined])
  opensFiles = true
  expect(linksNow()).toEqual([['a/b.ts']])
})

test('parses a working directory, encoded or not', () => {
  expect(parseWorkingDirectory('file://dev/home/user/workspace')).toBe('/home/user/workspace')
  expect(parseWorkingDirectory('file:///a%20b/caf%C3%A9')).toBe('/a b/café')
  expect(parseWorkingDirectory('file://dev/100%/é')).toBe('/100%/é')
})

test('ignores an invalid working directory', () => {
  for (const data of ['', 'http://dev/a', 'file://dev', '/home/user', `file://x/${'a'.repeat(5000)}`])
    expect(parseWorkingDirectory(data)).toBeUndefined()
})
