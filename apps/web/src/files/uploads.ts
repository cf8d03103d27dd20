import { createStore, type Store } from '@sandwire/client'
import { ApiError } from '../api/request.ts'
import type { writeFile } from '../api/workspace.ts'
import { messageOf } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'
import { displayName, formatPaths } from './display-name.ts'
import type { Dropped } from './drops.tsx'
import { joinPath } from './paths.ts'

/** Files that are uploaded together. */
interface UploadRequest {
  readonly sandbox: string
  readonly folder: string
  readonly files: readonly Dropped[]
  /** Overwrite existing files. */
  readonly replaces: boolean
}

/** An upload that is under way. */
interface RunningUpload {
  readonly id: number
  readonly text: string
  readonly sentBytes: number
  readonly totalBytes: number
  readonly stop: () => void
}

/** Outcome of an upload, for a notice. */
interface UploadEnd {
  readonly kind: 'info' | 'error'
  readonly text: string
}

const { uploads: texts } = fileTexts
/** Skipped files that are named. */
const MAX_NAMED = 3

function skippedText(paths: readonly string[]): string {
  const named = formatPaths(paths, MAX_NAMED).replaceAll('\n', ', ')
  return texts.skipped(paths.length, named)
}

/** Uploads with their progress, independent of what the page shows. */
export class Uploads {
  readonly #write: typeof writeFile
  readonly #running = createStore<readonly RunningUpload[]>([])
  #lastId = 0

  constructor(write: typeof writeFile) {
    this.#write = write
  }

  get running(): Store<readonly RunningUpload[]> {
    return this.#running
  }

  /** Uploads files one after the other; existing files are skipped unless `replaces` is set. */
  async start(request: UploadRequest): Promise<UploadEnd> {
    const controller = new AbortController()
    this.#lastId += 1
    const id = this.#lastId
    const [first] = request.files
    this.#running.set([
      ...this.#running.get(),
      {
        id,
        text: texts.uploading(
          request.files.length === 1 ? displayName(first?.path ?? '') : texts.count(request.files.length),
        ),
        sentBytes: 0,
        totalBytes: request.files.reduce((sum, { file }) => sum + file.size, 0),
        stop: () => controller.abort(),
      },
    ])
    try {
      return await this.#sendAll(id, request, controller.signal)
    } finally {
      this.#running.set(this.#running.get().filter((upload) => upload.id !== id))
    }
  }

  async #sendAll(id: number, request: UploadRequest, signal: AbortSignal): Promise<UploadEnd> {
    const { sandbox, folder, files, replaces } = request
    const skipped: string[] = []
    let [uploaded, before] = [0, 0]
    for (const { path, file } of files) {
      const start = before
      const onSent = (bytes: number): void => this.#setProgress(id, start + Math.min(bytes, file.size))
      try {
        const condition = replaces ? 'any' : 'new'
        await this.#write(sandbox, joinPath(folder, path), file, condition, { onSent, signal })
        uploaded += 1
      } catch (caught) {
        const done = texts.progress(uploaded, files.length)
        if (signal.aborted) return { kind: 'info', text: texts.canceled(done) }
        const isThere = caught instanceof ApiError && caught.code === 'file_changed'
        if (!isThere) return { kind: 'error', text: texts.failed(displayName(path), messageOf(caught), done) }
        skipped.push(path)
      }
      before += file.size
      this.#setProgress(id, before)
    }
    if (skipped.length === 0) return { kind: 'info', text: texts.done(uploaded) }
    return {
      kind: uploaded === 0 ? 'error' : 'info',
      text: `${texts.done(uploaded)}${skippedText(skipped)}`,
    }
  }

  #setProgress(id: number, sentBytes: number): void {
    this.#running.set(
      this.#running.get().map((upload) => (upload.id === id ? { ...upload, sentBytes } : upload)),
    )
  }
}
