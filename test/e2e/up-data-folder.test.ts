import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { AS_NOBODY, canBecomeNobody } from './support/nobody.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')

interface Outcome {
  readonly code: number
  /** The lines of standard error. */
  readonly stderrLines: readonly string[]
}

async function sandwire(
  args: readonly string[],
  {
    prefix = [],
    ...options
  }: { prefix?: readonly string[]; cwd?: string; env?: Record<string, string> } = {},
): Promise<Outcome> {
  const child = Bun.spawn([...prefix, process.execPath, MAIN, ...args], {
    ...options,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const stderr = await new Response(child.stderr).text()
  return { code: await child.exited, stderrLines: stderr.split('\n').filter((line) => line !== '') }
}

const up = (data: string, prefix: readonly string[] = []): Promise<Outcome> =>
  sandwire(['up', '--port', '0', '--data', data], { prefix })

/** A refusal that names the folder, says why in one line, and what to do. */
const refusal = (data: string, why: string): Outcome => ({
  code: 2,
  stderrLines: [
    `sandwire: Cannot use the data folder "${data}": ${why}`,
    expect.stringMatching(/^hint: choose .* with --data$/),
  ],
})

describe('sandwire up', () => {
  let folder = ''
  const at = (name: string): string => join(folder, name)
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'sandwire-data-'))
    writeFileSync(at('file'), '')
    symlinkSync(at('nowhere/deeper'), at('dangling'))
    symlinkSync(at('circle'), at('circle'))
    mkdirSync(at('closed'), { mode: 0o700 })
    chmodSync(folder, 0o755)
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  test.each(['/proc/x', '/proc/self/x/y'])(
    'refuses a data folder that the system cannot create: %s',
    async (data) => {
      const { code, stderrLines } = await up(data)
      expect([code, stderrLines.length]).toEqual([2, 2])
      expect(stderrLines[0]).toMatch(
        /^sandwire: Cannot use the data folder "\/proc\/.*": the folder cannot be created$/,
      )
    },
  )

  test.each([
    ['file', 'file', 'is not a folder'],
    ['file/x', 'file', 'is not a folder'],
    ['dangling', 'dangling', 'is a broken symbolic link'],
    ['circle/x', 'circle/x', 'is a symbolic link loop'],
  ])('names the path component that makes a data folder unusable: %s', async (name, what, why) => {
    const line = `sandwire: Cannot use the data folder "${at(name)}": "${at(what)}" ${why}; choose another with --data`
    expect(await up(at(name))).toEqual({ code: 2, stderrLines: [line] })
  })

  test('refuses a data folder with too long a name in one short line', async () => {
    const { code, stderrLines } = await up(at('a'.repeat(300)))
    expect([code, stderrLines.length]).toEqual([2, 1])
    expect(stderrLines[0]).toContain('is too long for a path; choose another with --data')
    expect(stderrLines[0]?.length).toBeLessThan(500)
  })

  test('refuses a data folder with other files in it, and leaves its mode unchanged', async () => {
    const data = at('project')
    mkdirSync(data)
    chmodSync(data, 0o755)
    writeFileSync(join(data, 'README.md'), '')
    expect(await up(data)).toEqual(
      refusal(data, 'it contains other files, and would become inaccessible to other users'),
    )
    expect(statSync(data).mode & 0o777).toBe(0o755)
  })

  test('recognizes its data folder when parts are missing and its mode is 755', async () => {
    const data = at('own')
    for (const name of ['', 'keys', 'isolation']) mkdirSync(join(data, name))
    writeFileSync(join(data, 'format'), '9\n', { mode: 0o600 })
    chmodSync(data, 0o755)
    const { stderrLines } = await up(data)
    expect(stderrLines[0]).toContain('it was written by format "9", and this version needs format 3')
  })

  test('refuses an empty --data, which would resolve to the current folder', async () => {
    expect(await sandwire(['up', '--port', '0', '--data', ''], { cwd: folder })).toEqual({
      code: 2,
      stderrLines: ['sandwire: Option --data is empty', 'hint: npx sandwire --help'],
    })
    expect(statSync(folder).mode & 0o777).toBe(0o755)
  })

  test.each(['cache', 'lock', 'host.log'])(
    'refuses a data folder in which an entry has the wrong file type: %s',
    async (part) => {
      const data = mkdtempSync(at('parts-'))
      if (part === 'cache') writeFileSync(join(data, part), '')
      else mkdirSync(join(data, part))
      const why = part === 'cache' ? 'it is not a folder' : 'it is a folder'
      expect(await up(data)).toEqual({
        code: 2,
        stderrLines: [
          `sandwire: Cannot use "${join(data, part)}": ${why}`,
          'hint: remove it, or choose another data folder with --data',
        ],
      })
    },
  )

  test.skipIf(!canBecomeNobody)(
    'refuses a data folder that the user cannot enter, write to or does not own',
    async () => {
      const line = (data: string, why: string): Outcome => ({
        code: 2,
        stderrLines: [`sandwire: Cannot use the data folder "${data}": ${why}choose another with --data`],
      })
      expect(await up(at('closed/x'), AS_NOBODY)).toEqual(
        line(at('closed/x'), `"${at('closed/x')}" is in a folder that this user may not enter; `),
      )
      expect(await up(at('closed'), AS_NOBODY)).toEqual(
        line(at('closed'), 'it belongs to user 0; start sandwire as that user, or '),
      )
      expect(await up(at('new'), AS_NOBODY)).toEqual(refusal(at('new'), 'this user may not write there'))
    },
  )
})

test('sandwire reports a deleted current folder or an unusable TMPDIR in two lines', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-gone-'))
  const script = `rmdir "$PWD" && exec "$@"`
  const gone = await sandwire(['up'], { prefix: ['sh', '-c', script, 'sh'], cwd: folder })
  expect(gone).toEqual({
    code: 2,
    stderrLines: [
      'sandwire: Cannot start here: the current folder no longer exists',
      'hint: change to another folder',
    ],
  })
  const data = join(tmpdir(), 'sandwire-never-made')
  expect(await sandwire(['doctor', '--data', data], { env: { TMPDIR: '/nowhere' } })).toEqual({
    code: 2,
    stderrLines: [
      'sandwire: Cannot create a temporary folder in "/nowhere": the folder cannot be created',
      'hint: set TMPDIR to a folder that this user can write to',
    ],
  })
})

test('doctor reports an unusable data folder', async () => {
  const child = Bun.spawn([process.execPath, MAIN, 'doctor', '--data', '/proc/x'], {
    env: { ...process.env, SANDWIRE_ISOLATION: 'none' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  expect(await new Response(child.stdout).text()).toContain(
    'Data folder  /proc/x cannot be used: the folder cannot be created\n',
  )
})
