import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'bun:test'
import { createScene } from './scene.fixture.ts'

const get = 'contract/git'

test('status names the files of a repository, and none otherwise', async () => {
  using scene = createScene()
  expect(await scene.get(`${get}/status`)).toEqual({
    status: 200,
    body: { is_repo: true, available: true, files: {} },
  })
  for (const name of ['modified', 'deleted', 'cached', 'old']) scene.write(name, `${name}, long enough\n`)
  scene.git('add', '.')
  scene.git('commit', '--quiet', '--message', 'first')
  scene.write('modified', 'x')
  rmSync(join(scene.root, 'deleted'))
  scene.git('rm', '--quiet', '--cached', 'cached')
  scene.git('mv', 'old', 'renamed')
  scene.write('added', 'x')
  scene.git('add', 'added')
  scene.write('added', 'y')
  scene.write('ünträcked', '')
  expect(await scene.get(`${get}/status`)).toEqual({
    status: 200,
    body: {
      is_repo: true,
      available: true,
      files: { modified: 'M', deleted: 'D', cached: 'D', renamed: 'M', added: 'A', ünträcked: 'U' },
    },
  })
  rmSync(join(scene.root, '.git'), { recursive: true })
  expect(await scene.get(`${get}/status`)).toEqual({ status: 200, body: { is_repo: false, files: [] } })
})

test('diff is against the last commit, and an error is an answer', async () => {
  using scene = createScene()
  scene.write('file', 'one\n')
  expect(await scene.get(`${get}/diff?path=file`)).toEqual({
    status: 200,
    body: { diff: '', path: 'file', error: expect.stringMatching(/^Git error: /) },
  })
  scene.git('add', '.')
  scene.git('commit', '--quiet', '--message', 'first')
  scene.write('file', 'two\n')
  scene.git('add', '.')
  scene.write('untracked', '')
  expect(await scene.get(`${get}/diff?path=file`)).toEqual({
    status: 200,
    body: { diff: scene.git('diff', 'HEAD', '--', 'file'), path: 'file' },
  })
  expect((await scene.get(`${get}/diff?path=untracked`)).body).toEqual({ diff: '', path: 'untracked' })
  rmSync(join(scene.root, '.git'), { recursive: true })
  expect(await scene.get(`${get}/diff?path=file`)).toMatchObject({
    status: 200,
    body: { diff: '', path: 'file', error: expect.stringMatching(/^Git error: /) },
  })
})

test('show gives a text of the last commit, or null and why', async () => {
  using scene = createScene()
  const shown = async (path: string): Promise<unknown> => (await scene.get(`${get}/show?path=${path}`)).body
  expect(await shown('file')).toEqual({ content: null, path: 'file', error: 'Not in HEAD' })
  scene.write('file', 'one\n')
  scene.write('folder/binary', Uint8Array.of(0xff, 0))
  scene.write('large', 'x'.repeat(5 * 1024 * 1024))
  scene.git('add', '.')
  scene.git('commit', '--quiet', '--message', 'first')
  scene.write('file', 'two\n')
  expect(await shown('file')).toEqual({ content: 'one\n', path: 'file' })
  expect(await shown('./folder/../file')).toEqual({ content: 'one\n', path: './folder/../file' })
  expect(await shown(join(scene.root, 'file'))).toEqual({ content: 'one\n', path: join(scene.root, 'file') })
  expect(await shown('missing')).toEqual({ content: null, path: 'missing', error: 'Not in HEAD' })
  expect(await shown('folder')).toEqual({ content: null, path: 'folder', error: 'Not in HEAD' })
  expect(await shown('folder/binary')).toEqual({ content: null, path: 'folder/binary', error: 'Binary file' })
  expect(await shown('large')).toEqual({ content: null, path: 'large', error: 'File too large' })
})

test.each(['diff', 'show'])(
  '%s refuses a path that leads out, and a missing one, as the contract does',
  async (route) => {
    using scene = createScene()
    for (const path of ['../x', 'a/../../x', '/etc/passwd', `${scene.root}-evil/x`])
      expect(await scene.get(`${get}/${route}?path=${path}`)).toEqual({
        status: 400,
        body: { detail: `Path traversal detected: ${path}` },
      })
    expect(await scene.get(`${get}/${route}`)).toEqual({
      status: 422,
      body: { detail: [{ type: 'missing', loc: ['query', 'path'], msg: 'Field required', input: null }] },
    })
  },
)
