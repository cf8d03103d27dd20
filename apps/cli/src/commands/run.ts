import {
  decodeRun,
  describeMissing,
  errorOfRun,
  readDiff,
  readRun,
  type Run,
  waitForResult,
} from '../agent/run-api.ts'
import { watchRun } from '../agent/watch-run.ts'
import { UsageError } from '../errors/errors.ts'
import { exitCodeOfError } from '../errors/exit-code.ts'
import { schema } from '@sandwire/protocol'
import { decodeResponse, looseObject } from '../server/response.ts'
import { printable } from '../text/printable.ts'
import { formatJson } from '../text/table.ts'
import type { Command, CommandContext, CommandOptions } from './command.ts'

type Action = (context: CommandContext, run: string) => Promise<number | void>

function describe(run: Run): string {
  const { state, outcome, message, usage, result, approvals } = run
  const lines = [
    `run       ${run.id}`,
    `state     ${outcome ?? state}${message === null ? '' : `: ${printable(message)}`}`,
    `cost      $${usage.costUsd.toFixed(2)}`,
    `task      ${printable(run.task)}`,
    ...approvals.flatMap(({ requestId, prompt, questions = [] }) => [
      `waits     ${requestId}  ${printable(prompt)}`,
      ...questions.slice(1).map(({ question }) => `          and: ${printable(question)}`),
    ]),
    ...(result === null ? [] : [`summary   ${printable(result.summary)}`]),
    ...(result === null || result.diffBytes === null ? [] : [`diff      ${result.diffBytes} bytes`]),
    ...describeMissing(run).map((line) => `missing   ${printable(line)}`),
  ]
  return `${lines.join('\n')}\n`
}

function show(context: CommandContext, response: unknown): void {
  const { io, isJson } = context
  io.print(isJson ? formatJson(response) : describe(decodeRun(response)))
}

const fetchRun: Action = async (context, run) => {
  const response = await context.api.request('GET', `/api/runs/${run}`)
  show(context, response)
}

const events: Action = async (context, run) => {
  // Fails if the run does not exist, before the terminal is changed.
  await context.api.request('GET', `/api/runs/${run}`)
  if ((await watchRun(context, run)) === 'detached') return 0
  const { api, io, isJson, program, urlOption } = context
  const ended = await waitForResult({ api, wait: io.wait }, run)
  if (!isJson && (ended.result?.diffBytes ?? 0) > 0)
    io.hint(`apply its changes: ${program} run diff ${run}${urlOption} | git apply --binary`)
  const error = errorOfRun(ended)
  return error === undefined ? 0 : exitCodeOfError(error)
}

const abort: Action = async (context, run) => {
  show(context, await context.api.request('POST', `/api/runs/${run}/abort`))
}

const diff: Action = async ({ api, io }, run) => {
  using interruption = io.openInterruption()
  io.print(await readDiff(api, run, interruption.signal))
}

const publishedSchema = looseObject({
  commit: schema.text(64),
  branch: schema.text(256),
  pullRequest: schema.nullable(looseObject({ url: schema.text(4096) })),
})

function publish(options: CommandOptions): Action {
  const branch = options.value('branch')
  const title = options.value('title')
  if (branch === undefined || title === undefined)
    throw new UsageError('Name the new branch and give a title: --branch NAME --title TEXT')
  const text = options.value('body')
  const body = {
    branch,
    title,
    ...(text === undefined ? {} : { body: text }),
    pullRequest: options.has('pull-request'),
  }
  return async ({ api, io, isJson }, run) => {
    const response = await api.request('POST', `/api/runs/${run}/publish`, body)
    if (isJson) return io.print(formatJson(response))
    const { commit, pullRequest } = decodeResponse(publishedSchema, response)
    io.info(`pushed commit ${printable(commit)} to branch ${printable(branch)}`)
    if (pullRequest !== null) io.print(`${printable(pullRequest.url)}\n`)
  }
}

function approve(request: string, options: CommandOptions): Action {
  const message = options.value('message')
  const given = options.values('answer')
  const decision = options.has('deny') ? 'deny' : 'allow'
  return async ({ api, io, isJson }, run) => {
    const { approvals } = await readRun(api, run)
    const pending = approvals.find(({ requestId }) => requestId === request)
    const questions = pending?.questions ?? []
    if (pending !== undefined && decision === 'allow' && given.length !== questions.length)
      throw new UsageError(
        `The request has ${questions.length} questions; give an --answer for each, in order`,
      )
    const answers = Object.fromEntries(questions.map(({ question }, at) => [question, given[at] ?? '']))
    const response = await api.request('POST', `/api/runs/${run}/approvals/${request}`, {
      decision,
      ...(message === undefined ? {} : { message }),
      ...(decision === 'deny' || questions.length === 0 ? {} : { answers }),
    })
    if (isJson) io.print(formatJson(response))
  }
}

/** A part of an id must not lead to another route. */
function pathPart(text: string, what: string): string {
  if (!/^[A-Za-z0-9_.:-]{1,128}$/.test(text))
    throw new UsageError(`"${printable(text)}" is not the id of ${what}`)
  return text
}

function parseAction(options: CommandOptions): Action {
  const [verb, , ...rest] = options.positionals
  const [first] = rest
  const need = (count: number, usage: string): void => {
    if (rest.length !== count) throw new UsageError(`Usage: sbx-stdio run ${usage}`)
  }
  switch (verb) {
    case 'show':
      need(0, 'show RUN')
      return fetchRun
    case 'events':
      need(0, 'events RUN')
      return events
    case 'abort':
      need(0, 'abort RUN')
      return abort
    case 'diff':
      need(0, 'diff RUN')
      return diff
    case 'say': {
      need(1, 'say RUN "MESSAGE"')
      const id = crypto.randomUUID()
      return async ({ api, io, isJson }, run) => {
        const response = await api.request('POST', `/api/runs/${run}/messages`, { text: first, id })
        if (isJson) io.print(formatJson(response))
      }
    }
    case 'approve':
      need(1, 'approve RUN REQUEST')
      return approve(pathPart(first ?? '', 'a request'), options)
    case 'publish':
      need(0, 'publish RUN --branch NAME --title TEXT [--body TEXT] [--pull-request]')
      return publish(options)
    default:
      throw new UsageError('Say what to do with the run: show, events, say, approve, abort, diff or publish')
  }
}

/** Shows or steers one run. */
export const run: Command = {
  help: `Usage: sbx-stdio run show RUN
       sbx-stdio run events RUN
       sbx-stdio run say RUN "MESSAGE"
       sbx-stdio run approve RUN REQUEST [--answer TEXT] [--deny] [--message TEXT]
       sbx-stdio run abort RUN
       sbx-stdio run diff RUN
       sbx-stdio run publish RUN --branch NAME --title TEXT [--body TEXT] [--pull-request]

Shows or steers a run of a coding agent. "events" follows the run to its end; on a terminal, you can type as in
sbx-stdio agent. "approve" answers a request that "show" lists; the first answer counts. "diff" prints the changes of an
ended run, for git apply. "publish" has the server push them as a commit on a new branch, and open a pull request.

  --answer TEXT        answer to a question of the agent; one for each, in order
  --deny               refuse the request
  --message TEXT       tell the agent why
  --branch NAME        new branch of the run's repository
  --title TEXT         first line of the commit, and title of the pull request
  --body TEXT          rest of the commit message, and text of the pull request
  --pull-request       open a pull request at GitHub
`,
  options: {
    answer: 'values',
    deny: 'flag',
    message: 'value',
    branch: 'value',
    title: 'value',
    body: 'value',
    'pull-request': 'flag',
  },
  fields: {
    branch: { option: '--branch' },
    title: { option: '--title' },
    body: { option: '--body' },
    pullRequest: { option: '--pull-request' },
  },
  parse: (options) => {
    const action = parseAction(options)
    const [, id] = options.positionals
    if (id === undefined) throw new UsageError('Name the run; list them: sbx-stdio runs')
    const name = pathPart(id, 'a run')
    return { hintCommand: 'runs', runId: name, run: (context) => action(context, name) }
  },
}
