import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { AS_NOBODY, canBecomeNobody } from './support/nobody.ts'

const MAIN = resolve(import.meta.dir, '../../apps/host/src/main.ts')

interface Told {
  readonly code: number
  /** What it said, line by line. */
  readonly said: readonly string[]
}

async function sandwire(
  args: readonly string[],
  {
    prefix = [],
    ...options
  }: { prefix?: readonly string[]; cwd?: string; env?: Record<string, string> } = {},
): Promise<Told> {
  const child = Bun.spawn([...prefix, process.execPath, MAIN, ...args], {
    ...options,
    env: { ...process.env, ...options.env },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const said = await new Response(child.stderr).text()
  return { code: await child.exited, said: said.split('\n').filter((line) => line !== '') }
}

const up = (data: string, prefix: readonly string[] = []): Promise<Told> =>
  sandwire(['up', '--port', '0', '--data', data], { prefix })

/** A refusal that names the folder, says why in one line, and what to do. */
const refusal = (data: string, why: string): Told => ({
  code: 2,
  said: [
    `sandwire: Cannot use the data folder "${data}": ${why}`,
    expect.stringMatching(/^hint: choose .* with --data$/),
  ],
})

describe('a data folder that cannot be one', () => {
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

  test.each(['/proc/x', '/proc/self/x/y'])('is refused where the system makes none: %s', async (data) => {
    const { code, said } = await up(data)
    expect([code, said.length]).toEqual([2, 2])
    expect(said[0]).toMatch(
      /^sandwire: Cannot use the data folder "\/proc\/.*": the folder cannot be created$/,
    )
  })

  test.each([
    ['file', 'file', 'is not a folder'],
    ['file/x', 'file', 'is not a folder'],
    ['dangling', 'dangling', 'is a broken symbolic link'],
    ['circle/x', 'circle/x', 'is a symbolic link loop'],
  ])('is refused with what is in the way: %s', async (name, what, why) => {
    const line = `sandwire: Cannot use the data folder "${at(name)}": "${at(what)}" ${why}; choose another with --data`
    expect(await up(at(name))).toEqual({ code: 2, said: [line] })
  })

  test('is refused in a short line when its name is too long', async () => {
    const { code, said } = await up(at('a'.repeat(300)))
    expect([code, said.length]).toEqual([2, 1])
    expect(said[0]).toContain('is too long for a path; choose another with --data')
    expect(said[0]?.length).toBeLessThan(500)
  })

  test('is refused where it holds other things, and stays open to whom it was', async () => {
    const data = at('project')
    mkdirSync(data)
    chmodSync(data, 0o755)
    writeFileSync(join(data, 'README.md'), '')
    expect(await up(data)).toEqual(
      refusal(data, 'it contains other files, and would become inaccessible to other users'),
    )
    expect(statSync(data).mode & 0o777).toBe(0o755)
  })

  test('is its own with parts that were moved away, also when others could enter it', async () => {
    const data = at('own')
    for (const name of ['', 'keys', 'isolation']) mkdirSync(join(data, name))
    writeFileSync(join(data, 'format'), '9\n', { mode: 0o600 })
    chmodSync(data, 0o755)
    const { said } = await up(data)
    expect(said[0]).toContain('it was written by format "9", and this version needs format 2')
  })

  test('is refused as an empty name, which would be the current folder', async () => {
    expect(await sandwire(['up', '--port', '0', '--data', ''], { cwd: folder })).toEqual({
      code: 2,
      said: ['sandwire: Option --data is empty', 'hint: npx sandwire --help'],
    })
    expect(statSync(folder).mode & 0o777).toBe(0o755)
  })

  test.each(['cache', 'lock', 'host.log'])(
    'is refused with the part that is something else: %s',
    async (part) => {
      const data = mkdtempSync(at('parts-'))
      if (part === 'cache') writeFileSync(join(data, part), '')
      else mkdirSync(join(data, part))
      const why = part === 'cache' ? 'it is not a folder' : 'it is a folder'
      expect(await up(data)).toEqual({
        code: 2,
        said: [
          `sandwire: Cannot use "${join(data, part)}": ${why}`,
          'hint: remove it, or choose another data folder with --data',
        ],
      })
    },
  )

  test.skipIf(!canBecomeNobody)('is refused to who may not enter it, or does not own it', async () => {
    const line = (data: string, why: string): Told => ({
      code: 2,
      said: [`sandwire: Cannot use the data folder "${data}": ${why}choose another with --data`],
    })
    expect(await up(at('closed/x'), AS_NOBODY)).toEqual(
      line(at('closed/x'), `"${at('closed/x')}" is in a folder that this user may not enter; `),
    )
    expect(await up(at('closed'), AS_NOBODY)).toEqual(
      line(at('closed'), 'it belongs to user 0; start sandwire as that user, or '),
    )
    expect(await up(at('new'), AS_NOBODY)).toEqual(refusal(at('new'), 'this user may not write there'))
  })
})

test('a start from a folder that is gone, or without one for throwaway sandboxes, says so in two lines', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-gone-'))
  const script = `rmdir "$PWD" && exec "$@"`
  const gone = await sandwire(['up'], { prefix: ['sh', '-c', script, 'sh'], cwd: folder })
  expect(gone).toEqual({
    code: 2,
    said: [
      'sandwire: Cannot start here: the current folder no longer exists',
      'hint: change to another folder',
    ],
  })
  const data = join(tmpdir(), 'sandwire-never-made')
  expect(await sandwire(['doctor', '--data', data], { env: { TMPDIR: '/nowhere' } })).toEqual({
    code: 2,
    said: [
      'sandwire: Cannot create a temporary folder in "/nowhere": the folder cannot be created',
      'hint: set TMPDIR to a folder that this user can write to',
    ],
  })
})

test('doctor says what is wrong with a data folder', async () => {
  const child = Bun.spawn([process.execPath, MAIN, 'doctor', '--data', '/proc/x'], {
    env: { ...process.env, SANDWIRE_ISOLATION: 'none' },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  expect(await new Response(child.stdout).text()).toContain(
    'Data folder  /proc/x cannot be used: the folder cannot be created\n',
  )
})
