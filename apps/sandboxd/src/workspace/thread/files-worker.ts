import { Root } from '../beneath/root.ts'
import type { FileContext } from '../files/context.ts'
import { copy } from '../files/copy.ts'
import { list, open, openFolder, stat } from '../files/listing.ts'
import { openPut, putMany } from '../files/put-many.ts'
import { readMany } from '../files/read-many.ts'
import { remove } from '../files/remove.ts'
import { rename } from '../files/rename.ts'
import { dropUpload, finishUpload, openUpload } from '../files/upload-file.ts'
import { walk } from '../files/walk.ts'
import { makeFolder, PendingFiles } from '../files/write.ts'
import { type AnyJob, JobRunner } from './job-runner.ts'
import type { FileRequest, FileResults, FileThread, SetUp } from './messages.ts'
import { type Send, serveThread } from './serve-thread.ts'

type Outcome =
  | { readonly kind: 'job'; readonly job: AnyJob }
  | { readonly kind: 'result'; readonly result: FileResults[keyof FileResults] }

function result(value: FileResults[keyof FileResults]): Outcome {
  return { kind: 'result', result: value }
}

function job(work: AnyJob): Outcome {
  return { kind: 'job', job: work }
}

/** Serves the requests that are sent to this thread. */
class Service {
  readonly #context: FileContext
  readonly #pending: PendingFiles
  readonly #runner: JobRunner
  readonly #send: Send<FileThread>

  constructor({ root, umask }: SetUp, send: Send<FileThread>) {
    this.#send = send
    this.#runner = new JobRunner({ send, later: setImmediate, now: () => performance.now() })
    this.#context = { root: new Root(root), umask, now: () => performance.now() }
    this.#pending = new PendingFiles(this.#context)
  }

  request(id: number, request: FileRequest): void {
    const outcome = this.#perform(request)
    if (outcome.kind === 'job') this.#runner.start(id, outcome.job)
    else this.#send({ kind: 'done', id, result: outcome.result })
  }

  cancel(id: number): void {
    this.#runner.cancel(id)
  }

  taken(id: number): void {
    this.#runner.taken(id)
  }

  #perform(request: FileRequest): Outcome {
    const context = this.#context
    switch (request.verb) {
      case 'stat':
        return result(stat(context, request.path, request.followsLink))
      case 'list':
        return job(list(context, request.path, request.limits))
      case 'open':
        return result(open(context, request.path))
      case 'openFolder':
        return result(openFolder(context, request.path))
      case 'create':
        return result(this.#pending.create(request.pending, request.path, request.file))
      case 'commit':
        return result(this.#pending.commit(request.pending))
      case 'discard':
        this.#pending.discard(request.pending)
        return result(undefined)
      case 'makeFolder':
        makeFolder(context, request.path, request.options)
        return result(undefined)
      case 'remove':
        return job(quietly(remove(context, request.path, request.options)))
      case 'rename':
        return job(quietly(rename(context, request.from, request.to, request.options)))
      case 'copy':
        return job(copy(context, request.from, request.to, request.options))
      case 'walk':
        return job(walk(context, request.path, request.bounds))
      case 'putMany':
        return job(putMany(context, request.folder, request.what))
      case 'openPut':
        return result(openPut(context, request.folder, request.path))
      case 'readMany':
        return job(readMany(context, request.folder, request.what))
      case 'openUpload':
        return job(openUpload(context, request.upload, request.how))
      case 'finishUpload':
        return result(finishUpload(context, request.upload, request.finished))
      case 'dropUpload':
        return result(dropUpload(context, request.upload))
    }
  }
}

/** Runs a job without a result. */
function* quietly(work: Generator<undefined, void, void>): Generator<undefined, undefined, void> {
  yield* work
}

serveThread<FileThread>((setUp, send) => new Service(setUp, send))
