import { findBrowserObstacle } from '../../test/e2e/support/browser.ts'
import { type Desk, WorkbenchScene } from '../../test/e2e/support/workbench.ts'
import { findIsolationObstacle } from './control-plane.ts'

const PAGE = new URL('../programs/workbench-page.ts', import.meta.url).pathname

/** Why the workbench cannot be measured here, or undefined when it can. */
export function findWorkbenchObstacle(): string | undefined {
  return findBrowserObstacle() ?? findIsolationObstacle()
}

/** The workbench in Chromium, with what measures it in its page. */
export interface MeasuredWorkbench {
  readonly scene: WorkbenchScene
  readonly desk: Desk
  readonly close: () => Promise<void>
}

/** Opens the workbench at a prompt. */
export async function openWorkbench(): Promise<MeasuredWorkbench> {
  const built = await Bun.build({ entrypoints: [PAGE], target: 'browser', format: 'iife' })
  const content = (await built.outputs[0]?.text()) ?? ''
  const scene = await WorkbenchScene.open()
  try {
    const desk = await scene.openDesk()
    await desk.context.addInitScript({ content })
    await desk.page.reload()
    await desk.first.waitFor('>')
    return { scene, desk, close: () => scene[Symbol.asyncDispose]() }
  } catch (error) {
    await scene[Symbol.asyncDispose]()
    throw error
  }
}
