import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { encodePath } from '@sandwire/protocol'
import { expect, test } from 'bun:test'
import type { ToolPlan } from '../tool.ts'
import { type Answer, createFixture, type Fixture } from './git-workspace.fixture.ts'

/** Inputs that would be an option, a range, another repository's file or a pattern if they were not treated as names. */
const INPUTS = [
  '--output=P',
  '-oP',
  '--upload-pack=touch P',
  '--exec-path=.',
  '--config=core.sshCommand=touch P',
  '-c',
  '-h',
  '--open-files-in-pager=touch P',
  '-Otouch P',
  '--open=touch P',
  '--exec=touch P',
  '--no-index',
  '--ext-diff',
  'ext::sh -c touch% P',
  'ssh://-oProxyCommand=touch P/x',
  '@{-1}',
  '@{u}',
  'HEAD:../../x',
  'HEAD..HEAD',
  ':(attr)',
  ':(top)',
  ':(exclude)file',
  ':/',
  ':!file',
  '*',
  'f*',
  'file\nother',
  '$(touch P)',
  '; touch P',
  '--',
] as const

/** Requests every route with the input in every text parameter. */
async function askWith(fixture: Fixture, input: string): Promise<readonly Answer[]> {
  const text = encodePath(input) ?? ''
  const answers: Answer[] = []
  const queries = [
    'show?path=',
    'show?path=file&ref=',
    'diff?path=',
    'diff?path=file&old=',
    'diff?from=',
    'diff?to=',
    'diff?from=HEAD&to=',
    'log?path=',
  ]
  const more = ['log?ref=', 'log?after=', 'status?repo=']
  for (const query of [...queries, ...more]) answers.push(await fixture.get(`git/${query}${text}`))
  answers.push(await fixture.get(`compat/git/diff?path=${text}`))
  for (const route of ['stage', 'unstage', 'discard'])
    answers.push(await fixture.post(`git/${route}`, { paths: [input] }))
  answers.push(await fixture.post('git/discard', { paths: [input], untracked: true }))
  const author = { name: input, email: input }
  answers.push(await fixture.post('git/commit', { message: input, author, amend: true }))
  return answers
}

function createPlainFixture(spoil?: (plan: ToolPlan) => ToolPlan): Fixture {
  const fixture = createFixture(spoil === undefined ? {} : { spoil })
  fixture.write('file', 'one\n')
  fixture.write('other', 'one\n')
  fixture.git('add', '.')
  fixture.git('commit', '--quiet', '--message', 'first')
  fixture.write('file', 'two\n')
  return fixture
}

test.each([...INPUTS])('%j is a name and nothing else (threat T18)', async (input) => {
  using fixture = createPlainFixture()
  for (const { status } of await askWith(fixture, input)) expect([200, 400, 404, 409, 422]).toContain(status)
  expect(readdirSync(fixture.root).toSorted()).toEqual(['.git', 'file', 'other'])
  // No pattern matched: the file is unchanged.
  expect(fixture.git('status', '--porcelain')).toBe(' M file\n')
})

test('serves files with hostile names like any other (threat T18)', async () => {
  using fixture = createPlainFixture()
  // A name contains no slash; everything else is used unchanged.
  const names = INPUTS.map((input) => input.replaceAll('/', '_'))
  for (const name of names) fixture.write(name, 'one\n')
  expect(await fixture.post('git/stage', { paths: names })).toMatchObject({ status: 200 })
  expect(await fixture.post('git/commit', { message: '-m' })).toMatchObject({ status: 200 })
  for (const name of names) fixture.write(name, 'two\n')
  for (const name of names.filter((given) => /^[-:*]/.test(given))) {
    const query = `?path=${encodePath(name) ?? ''}`
    expect(await fixture.get(`git/show${query}`)).toMatchObject({ body: { path: name, content: 'one\n' } })
    expect(await fixture.get(`git/diff${query}`)).toMatchObject({
      body: { files: [{ path: name, added: 1 }] },
    })
    expect(await fixture.get(`git/log${query}`)).toMatchObject({ body: { commits: [{ message: '-m' }] } })
  }
  expect(await fixture.post('git/discard', { paths: names })).toMatchObject({ status: 200 })
  for (const name of names) expect(await Bun.file(join(fixture.root, name)).text()).toBe('one\n')
  expect(await fixture.get('git/status')).toMatchObject({ body: { files: [{ path: 'file' }] } })
})

test('without `--` an input would be an option, and without GIT_LITERAL_PATHSPECS a pattern', async () => {
  const withoutDashes = (plan: ToolPlan): ToolPlan => {
    const [program, ...args] = plan.argv
    return { ...plan, argv: [program, ...args.filter((arg) => arg !== '--')] }
  }
  using unguarded = createPlainFixture(withoutDashes)
  await unguarded.get('git/diff?path=--output=P')
  expect(readdirSync(unguarded.root)).toContain('P')
  using patterned = createPlainFixture(({ env = {}, ...plan }) => {
    const { GIT_LITERAL_PATHSPECS: _, ...rest } = env
    return { ...plan, env: rest }
  })
  expect(await patterned.get('git/diff?path=f*')).toMatchObject({ body: { files: [{ path: 'file' }] } })
})

test("git's messages are shown without control or bidirectional characters (threat T24)", async () => {
  using fixture = createFixture()
  fixture.write('\u{1b}]0;x\u{7}\u{202e}\n', 'x')
  fixture.git('config', 'filter.\u{1b}[2J\u{202e}.clean', 'false')
  fixture.write('.gitattributes', '* filter=\u{1b}[2J\u{202e}\n')
  const { status, body } = await fixture.post('git/stage', { paths: ['\u{1b}]0;x\u{7}\u{202e}\n'] })
  expect(status).toBe(409)
  const missing = await fixture.post('git/discard', { paths: ['\u{1b}[2J\u{202e}'] })
  for (const text of [JSON.stringify(body), JSON.stringify(missing.body)]) {
    expect(text).toContain('Cannot ')
    for (const mark of ['\u{202e}', '\u{1b}', 'u001b', 'u0007']) expect(text).not.toContain(mark)
  }
})
