import { eventually } from '@sandwire/testing'
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { formatLayout, panesOf, parseLayout } from './layout.ts'
import { cleanups, describeTmux, firstPane, open, setUp, windowsIn } from './tmux.fixture.ts'
import type { TmuxView } from './view.ts'

describeTmux('the tmux service', () => {
  test('says that tmux is missing', async () => {
    const { service } = setUp({ hasTmux: false })
    expect(await service.view()).toEqual({ state: 'missing' })
    expect(service.act({ type: 'new_window' })).rejects.toThrow('not installed')
  })

  test('starts a server with the first window, and not before', async () => {
    const { service, tmux } = setUp()
    expect(await service.view()).toEqual({ state: 'stopped' })
    expect(service.act({ type: 'kill_pane', pane: '%0' })).rejects.toThrow('no tmux server')
    await service.act({ type: 'new_window', name: 'work', cwd: '/tmp' })
    expect(tmux('list-windows', '-F', '#{window_name} #{pane_current_path}')).toBe('work /tmp\n')
  })

  test('splits, selects, swaps, renames, zooms and kills', async () => {
    const { service } = setUp()
    const left = await firstPane(service)
    const { pane: right = '' } = await service.act({ type: 'split', pane: left, direction: 'right' })
    const [window] = windowsIn(await service.view())
    expect(window?.layout.kind === 'row' && window.layout.cells.length).toBe(2)
    expect(window?.panes.find(({ isActive }) => isActive)?.id).toBe(right)
    await service.act({ type: 'select_pane', pane: left })
    await service.act({ type: 'rename_pane', pane: left, name: `it's; "x" #{q}` })
    await service.act({ type: 'rename_window', window: window?.id ?? '', name: 'work' })
    await service.act({ type: 'swap_panes', pane: left, other: right })
    const { view } = await service.act({ type: 'zoom_pane', pane: left })
    const [after] = windowsIn(view)
    expect(after).toMatchObject({ name: 'work', isZoomed: true, layout: { kind: 'pane', pane: left } })
    expect(after?.panes.find(({ id }) => id === left)?.title).toContain(`it's; "x"`)
    const last = await service.act({ type: 'kill_pane', pane: right })
    expect(windowsIn(last.view)[0]?.panes.map(({ id }) => id)).toEqual([left])
    expect(await service.act({ type: 'kill_server' })).toEqual({ view: { state: 'stopped' } })
  })

  const HOSTILE = [
    'it\'s; "x"',
    '#(touch ran) #{pid} #S ##x #',
    '#[bg=red]#(touch ran)##[x',
    '-x',
    'x;',
    String.raw`x\;`,
    '~ `touch ran` $(touch ran)',
  ]
  const titles = (tmux: (...args: string[]) => string) =>
    tmux('list-panes', '-s', '-F', '#{pane_title}').split('\n').slice(0, -1)
  /** tmux doubles backslashes when it renames a window. */
  const names = (tmux: (...args: string[]) => string) =>
    tmux('list-windows', '-F', '#{window_name}')
      .replaceAll(String.raw`\\`, '\\')
      .split('\n')
      .slice(0, -1)

  test('takes names and folders as they are, and runs nothing in them', async () => {
    const { service, tmux, folder } = setUp()
    const hostileFolder = path.join(folder, '#(touch ran);')
    mkdirSync(hostileFolder)
    for (const name of HOSTILE) {
      const { pane = '' } = await service.act({ type: 'new_window', name, cwd: hostileFolder })
      expect(names(tmux)).toEqual([name])
      // Known once the program runs.
      const pathOf = (): string => tmux('display-message', '-p', '#{pane_current_path}').trim()
      await eventually(() => pathOf() !== '', { what: 'the folder of the pane' })
      expect(pathOf()).toBe(hostileFolder)
      await service.act({ type: 'new_window', name, cwd: hostileFolder })
      expect(names(tmux)[1]).toBe(name)
      await service.act({ type: 'rename_pane', pane, name })
      expect(titles(tmux)[0]).toBe(name)
      await service.act({ type: 'rename_window', window: '@0', name: 'plain' })
      await service.act({ type: 'rename_window', window: '@0', name })
      expect(names(tmux)[0]).toBe(name)
      await service.act({ type: 'split', pane, direction: 'down', cwd: hostileFolder })
      await service.act({ type: 'kill_server' })
    }
    expect(
      [folder, hostileFolder].flatMap((each) => readdirSync(each)).filter((name) => name === 'ran'),
    ).toEqual([])
  })

  test('shows no pane that a name of a folder makes up', async () => {
    const { service, tmux, folder } = setUp()
    await firstPane(service)
    const hostile = path.join(folder, 'é\n%7\t@0\t1\tx\t80\t24\t1\t0\tsh\t\\n')
    mkdirSync(hostile, { recursive: true })
    tmux('split-window', '-c', hostile)
    const folderOf = (pane: string): string =>
      tmux('display-message', '-p', '-t', pane, '#{pane_current_path}').trim()
    await eventually(() => folderOf('%1') !== '', { what: 'the folder of the pane' })
    const { view } = await service.act({ type: 'select_window', window: '@0' })
    const [window] = windowsIn(view)
    expect(window?.panes.map(({ id }) => id)).toEqual(['%0', '%1'])
    expect(window?.panes[1]?.cwd).toBe(hostile.replaceAll(/[\n\t]/g, '?'))
  })

  test('reports what a tmux client inside changes', async () => {
    const { service, tmux } = setUp()
    await firstPane(service)
    const views: TmuxView[] = []
    await service.watch((view) => void views.push(view))
    tmux('split-window', '-v')
    await eventually(() => windowsIn(views.at(-1) ?? { state: 'stopped' })[0]?.layout.kind === 'column', {
      what: 'the split',
    })
    tmux('kill-server')
    await eventually(() => views.at(-1)?.state === 'stopped', { what: 'the end of the server' })
    expect(await service.view()).toEqual({ state: 'stopped' })
  })

  test('keeps a window selected while another one, selected before, is resized', async () => {
    const { service, tmux } = setUp()
    await firstPane(service)
    await service.act({ type: 'new_window' })
    await Promise.all([
      service.act({ type: 'select_window', window: '@0' }),
      service.act({ type: 'resize_window', window: '@1', cols: 90, rows: 30 }),
    ])
    const active = windowsIn(await service.view()).filter(({ isActive }) => isActive)
    expect(active.map(({ id }) => id)).toEqual(['@0'])
    await service.act({ type: 'select_window', window: '@1' })
    await service.act({ type: 'resize_window', window: '@1', cols: 91, rows: 31 })
    expect(tmux('display-message', '-p', '#{window_id} #{window_width}').trim()).toBe('@1 91')
  })

  test('knows which replies are those of a resize, while other actions wait', async () => {
    const { service } = setUp()
    const pane = await firstPane(service)
    for (let cols = 90; cols < 93; cols += 1) {
      const resize = service.act({ type: 'resize_window', window: '@0', cols, rows: 30 })
      const split = service.act({ type: 'split', pane, direction: 'right' })
      expect((await split).pane).toMatch(/^%\d+$/)
      await resize
    }
  })

  test('reads every layout that tmux writes', async () => {
    const { service, tmux } = setUp()
    const first = await firstPane(service)
    const [window] = windowsIn(await service.view())
    await service.act({ type: 'resize_window', window: window?.id ?? '', cols: 200, rows: 60 })
    for (const direction of ['left', 'down', 'right', 'up', 'down'] as const)
      await service.act({ type: 'split', pane: first, direction })
    for (const name of ['even-horizontal', 'even-vertical', 'main-horizontal', 'main-vertical', 'tiled']) {
      tmux('select-layout', name)
      const text = tmux('display-message', '-p', '#{window_layout}').trim()
      const layout = parseLayout(text)
      expect(layout && formatLayout(layout)).toBe(text)
      expect(layout && panesOf(layout)).toHaveLength(6)
    }
  })

  test('reports a server that a user starts', async () => {
    const { service, tmux } = setUp()
    const views: TmuxView[] = []
    const stop = await service.watch((view) => void views.push(view))
    cleanups.push(stop)
    expect(views).toEqual([{ state: 'stopped' }])
    tmux('new-session', '-d', '-n', 'mine')
    const isShown = (): boolean => windowsIn(views.at(-1) ?? { state: 'stopped' })[0]?.name === 'mine'
    await eventually(isShown, { what: 'the server' })
  })

  test('shows another session when its own is killed', async () => {
    const { service, tmux } = setUp()
    await firstPane(service)
    const views: TmuxView[] = []
    await service.watch((view) => void views.push(view))
    tmux('new-session', '-d', '-s', 'other', '-n', 'there')
    tmux('kill-session', '-t', 'main')
    const isShown = (): boolean => windowsIn(views.at(-1) ?? { state: 'stopped' })[0]?.name === 'there'
    await eventually(isShown, { what: 'the other session' })
    expect(views.map(({ state }) => state)).not.toContain('stopped')
  })

  test('knows when a pane wrote something that no session shows', async () => {
    const { service, tmux } = setUp()
    expect(service.lastOutputMs()).toBeNull()
    tmux('new-session', '-d')
    const hasWritten = (): boolean => {
      tmux('send-keys', 'Enter')
      return service.lastOutputMs() !== null
    }
    await eventually(hasWritten, { what: 'the output' })
  })

  test('joins a server that a user started', async () => {
    const { service, tmux } = setUp()
    tmux('new-session', '-d', '-s', 'own', '-n', 'mine')
    expect(windowsIn(await service.view()).map(({ name }) => name)).toEqual(['mine'])
  })
})

describeTmux('a pane', () => {
  test('gets typed bytes and sends output', async () => {
    const { service } = setUp()
    const pane = open(service, await firstPane(service))
    await pane.shows('$ ')
    pane.type('echo $((6*7))x é\r')
    await pane.shows('42x é')
    await eventually(() => pane.settled() === 'echo $((6*7))x é\r'.length + 1, {
      what: 'the input to settle',
    })
  })

  test('delivers every byte, split anywhere', async () => {
    const { service, folder } = setUp()
    const pane = open(service, await firstPane(service))
    await pane.shows('$ ')
    const all = Buffer.from(Array.from({ length: 256 * 40 }, (_, index) => (index * 7) % 256))
    const data = Buffer.concat([Buffer.from('<<'), Buffer.from('aé€😀'.repeat(500)), all, Buffer.from('>>')])
    writeFileSync(path.join(folder, 'data'), data)
    pane.type('stty raw -echo; cat data; stty sane\r')
    await eventually(() => pane.bytes().indexOf('>>') > 0, { what: 'the data' })
    const from = pane.bytes().indexOf('<<')
    expect(
      pane
        .bytes()
        .subarray(from, from + data.byteLength)
        .equals(data),
    ).toBe(true)
  })

  test('blocks its programs while it is paused, and loses nothing', async () => {
    const { service } = setUp()
    const pane = open(service, await firstPane(service))
    await pane.shows('$ ')
    pane.type('seq 1 200000; echo done-$((1+1))\r')
    await eventually(() => pane.bytes().byteLength > 20_000, { what: 'the flood' })
    pane.process.pause()
    const { byteLength } = pane.bytes()
    await Bun.sleep(300)
    expect(pane.bytes().byteLength).toBe(byteLength)
    pane.process.resume()
    await pane.shows('done-2')
    const numbers = pane
      .text()
      .split('\r\n')
      .filter((line) => /^\d+$/.test(line))
      .map(Number)
    expect(numbers).toEqual(Array.from({ length: 200_000 }, (_, index) => index + 1))
  })

  test('sends exactly what pipe-pane records, beside three others that flood', async () => {
    const { service, tmux, folder } = setUp()
    const first = await firstPane(service)
    const ids = [first]
    for (const direction of ['right', 'down', 'up'] as const)
      ids.push((await service.act({ type: 'split', pane: first, direction })).pane ?? '')
    const panes = ids.map((id) => open(service, id))
    await Promise.all(panes.map((pane) => pane.shows('$ ')))
    for (const id of ids) tmux('pipe-pane', '-O', '-t', id, `cat > ${folder}/${id.slice(1)}.log`)
    const starts = panes.map((pane) => pane.bytes().byteLength)
    for (const [index, pane] of panes.entries())
      pane.type(`seq ${index * 1_000_000} ${index * 1_000_000 + 30_000}; echo end-$((1+1))\r`)
    // One reader after the other falls behind.
    for (const pane of panes) {
      pane.process.pause()
      await Bun.sleep(20)
      pane.process.resume()
    }
    await Promise.all(panes.map((pane) => pane.shows('end-2\r\n$ ')))
    for (const [index, pane] of panes.entries()) {
      const log = path.join(folder, `${(ids[index] ?? '').slice(1)}.log`)
      const sent = pane.bytes().subarray(starts[index] ?? 0)
      await eventually(() => readFileSync(log).byteLength === sent.byteLength, { what: 'the log' })
      expect(readFileSync(log).equals(sent)).toBe(true)
    }
  })

  test('keeps characters whose bytes arrive one at a time', async () => {
    const { service, folder } = setUp()
    const pane = open(service, await firstPane(service))
    await pane.shows('$ ')
    const bytes = [...Buffer.from('é€😀')].map((byte) => `printf '\\${byte.toString(8)}'; sleep 0.01\n`)
    writeFileSync(path.join(folder, 'slow.sh'), bytes.join(''))
    pane.type('sh slow.sh; echo\r')
    await pane.shows('é€😀\r\n')
  })

  test('types into its neighbor', async () => {
    const { service } = setUp()
    const left = await firstPane(service)
    const { pane: right = '' } = await service.act({ type: 'split', pane: left, direction: 'right' })
    const shown = open(service, right)
    await shown.shows('$ ')
    expect(await service.typeInto(left, 'right', new TextEncoder().encode('echo $((6*7))\r'))).toBe(true)
    await shown.shows('42')
    expect(await service.typeInto(left, 'up', new Uint8Array(1))).toBe(false)
    expect(await service.typeInto(left, 'no such title', new Uint8Array(1))).toBe(false)
  })

  test('interrupts a flood while it is paused', async () => {
    const { service } = setUp()
    const pane = open(service, await firstPane(service))
    await pane.shows('$ ')
    pane.type('yes\r')
    await eventually(() => pane.bytes().byteLength > 20_000, { what: 'the flood' })
    pane.process.pause()
    pane.process.signal('SIGINT')
    pane.process.resume()
    pane.type('echo stopped-$((1+1))\r')
    await pane.shows('stopped-2')
  })

  test('shows its screen, history and modes to a client that comes later', async () => {
    const { service } = setUp()
    const id = await firstPane(service)
    const first = open(service, id)
    await first.shows('$ ')
    first.type(`seq 1 100; printf '\\033[?1049h\\033[?1003h\\033[?25l\\101LT'; sleep 60\r`)
    await first.shows('ALT')
    const second = open(service, id)
    await second.shows('ALT')
    expect(second.text()).toContain('\u001B[?1049h')
    expect(second.text()).toContain('\u001B[?1003h')
    expect(second.text()).toContain('\u001B[?25l')
    expect(second.text()).toContain('100\r\n')
  })

  test('goes on when a user detaches all clients', async () => {
    const { service, tmux } = setUp()
    const pane = open(service, await firstPane(service))
    await pane.shows('$ ')
    tmux('detach-client', '-s', 'main')
    tmux('send-keys', 'echo meanwhile', 'Enter')
    await pane.shows('meanwhile\r\n')
    const types = async (): Promise<boolean> => {
      pane.type('echo again-$((1+1))\r')
      await Bun.sleep(50)
      return pane.text().includes('again-2')
    }
    await eventually(types, { what: 'the pane to take input again' })
    expect(pane.end()).toBeUndefined()
  })

  test('is paused also when its program was replaced', async () => {
    const { service, tmux, folder } = setUp()
    const id = await firstPane(service)
    const pane = open(service, id)
    await pane.shows('$ ')
    tmux('respawn-pane', '-k', '-t', id, 'echo new-$((1+1)); exec sh')
    await pane.shows('new-2')
    await service.act({ type: 'select_pane', pane: id })
    pane.process.pause()
    tmux('send-keys', '-t', id, 'seq 1 30000; echo done > end', 'Enter')
    await Bun.sleep(300)
    expect(readdirSync(folder)).not.toContain('end')
    pane.process.resume()
    await pane.shows('30000\r\n')
  })

  test('has the size of the client used last, and of the others when no viewer is left', async () => {
    const { service, tmux, folder } = setUp()
    const id = await firstPane(service)
    const [window] = windowsIn(await service.view())
    const stop = await service.watch(() => undefined)
    const resize = (cols: number, rows: number) =>
      service.act({ type: 'resize_window', window: window?.id ?? '', cols, rows })
    const size = (): string =>
      tmux('display-message', '-p', '-t', id, '#{window_width}x#{window_height}').trim()
    const attach = `env -u TMUX TMUX_TMPDIR=${folder} tmux attach`
    const outer = (...args: string[]) => Bun.spawnSync(['tmux', '-S', path.join(folder, 'outer'), ...args])
    cleanups.unshift(() => void outer('kill-server'))
    outer('-f', '/dev/null', 'new-session', '-d', '-x', '100', '-y', '31', attach)
    await eventually(() => size() === '100x30', { what: 'the size of the terminal' })
    // The terminal also counts as used when it answers tmux.
    for (const [cols, rows] of [
      [150, 50],
      [45, 20],
    ] as const) {
      const hasSize = async (): Promise<boolean> => {
        await resize(cols, rows)
        return size() === `${cols}x${rows}`
      }
      await eventually(hasSize, { what: `${cols}x${rows}` })
    }
    stop()
    await eventually(() => size() === '100x30', { what: 'the size of the terminal again' })
  })

  test('has the size that tmux gives it', async () => {
    const { service } = setUp()
    const id = await firstPane(service)
    const pane = open(service, id)
    await pane.shows('$ ')
    const [window] = windowsIn(await service.view())
    await service.act({ type: 'resize_window', window: window?.id ?? '', cols: 120, rows: 40 })
    await eventually(() => pane.sizes.at(-1) === '120x40', { what: 'the size of the window' })
    await service.act({ type: 'split', pane: id, direction: 'right' })
    await eventually(() => pane.sizes.at(-1) === '60x40', { what: 'half of it' })
    pane.process.resize(80, 40)
    await eventually(() => pane.sizes.at(-1) === '80x40', { what: 'the size that was requested' })
    // tmux tells the kernel a little later.
    const isKnown = async (): Promise<boolean> => {
      pane.type('stty size\r')
      await Bun.sleep(100)
      return pane.text().includes('40 80')
    }
    await eventually(isKnown, { what: 'the size of the terminal' })
  })

  test('ends with its shell, with the server, and stays when its session ends', async () => {
    const { service, tmux } = setUp()
    const id = await firstPane(service)
    const { pane: other = '' } = await service.act({ type: 'split', pane: id, direction: 'down' })
    const [first, second, third] = [open(service, id), open(service, other), open(service, other)]
    await third.process.terminate()
    expect(third.end()).toEqual({ code: 0, signal: null, truncated: false })
    await first.shows('$ ')
    first.type('exit\r')
    await eventually(() => first.end()?.code === 0, { what: 'the end of the pane' })
    expect(second.end()).toBeUndefined()
    tmux('kill-server')
    await eventually(() => second.end()?.signal === 'SIGHUP', { what: 'the end of the server' })
  })
})
