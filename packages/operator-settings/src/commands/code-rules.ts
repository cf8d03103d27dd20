import { SHELLS } from './command-name.ts'

/** Where a program takes something that it runs. All that applies counts. */
export interface CodeRule {
  readonly names: readonly string[]
  /** Options, or words like them, that code follows or is glued to. */
  readonly flags?: RegExp
  /** Beginnings of arguments whose rest is code. */
  readonly glued?: RegExp
  /** Operands that are code, or a command, counted from 0: from one on, or from one to another. */
  readonly operands?: { readonly from: number; readonly to: number }
  /** Options whose next argument is their value and no operand. */
  readonly takes?: RegExp
  /** Options that bring the code in place of an operand. */
  readonly instead?: RegExp
  /** Operands like these are settings that decide what runs, and are not counted. */
  readonly assigns?: RegExp
  /** Runs a command that stands among its arguments, so that a name there may be that of a program. */
  readonly wraps?: true
  /** Every argument can be code. */
  readonly isAll?: true
  /** Its name is an ordinary word too: it counts only where a program is named. */
  readonly isWord?: true
}

const LAST = Number.POSITIVE_INFINITY
const FIRST = { from: 0, to: 0 }
const SECOND = { from: 1, to: 1 }
const ASSIGNMENT = /^[^-][^=]*=/

/** Programs that run what they are told in an argument. A guard rail: there are others, and those of one's own. */
export const CODE_RULES: readonly CodeRule[] = [
  // Short options may be put together, as in -lc; fish also takes -C.
  {
    names: SHELLS,
    flags: /^(?:-[A-Za-z]*c[A-Za-z]*|--(?:init-)?command|-Command|-EncodedCommand|--rcfile|--init-file)$/i,
  },
  { names: ['su', 'runuser', 'script'], flags: /^(?:-[A-Za-z]*c|--(?:session-)?command)$/ },

  // Interpreters.
  { names: ['python', 'pypy', 'ipython'], flags: /^-[A-Za-z]*[cm]$/ },
  { names: ['timeit'], isAll: true },
  { names: ['pdb'], flags: /^(?:-c|--command)$/ },
  { names: ['perl'], flags: /^-[A-Za-z0]*[eEmMId]$/, glued: /^-[mMd]/ },
  { names: ['ruby', 'jruby', 'irb'], flags: /^(?:-[A-Za-z]*[erI])$/ },
  { names: ['lua', 'luajit', 'texlua'], flags: /^-[A-Za-z]*[el]$/ },
  { names: ['Rscript', 'R'], flags: /^-[A-Za-z]*[eE]$/ },
  {
    names: ['node', 'nodejs', 'bun', 'tsx', 'ts-node'],
    flags: /^(?:-[a-z]*[epr]|--eval|--print|--require|--import|--preload|--(?:experimental-)?loader|exec|x)$/,
  },
  { names: ['deno'], flags: /^(?:eval|-e|-p|--eval|--preload|--import)$/ },
  {
    names: ['php'],
    flags: /^(?:-[a-z]*[rBREd]|--run|--process-(?:begin|code|end)|--define)$/,
  },
  {
    names: [
      'julia',
      'elixir',
      'iex',
      'scala',
      'groovy',
      'clojure',
      'clj',
      'racket',
      'ghc',
      'ocaml',
      'crystal',
    ],
    flags: /^(?:-[A-Za-z]*[eE]|--eval|--print|-pr|eval)$/,
  },
  { names: ['erl', 'sbcl', 'guile', 'swipl'], flags: /^(?:--?eval|-[ceglst]|-run|--load)$/ },
  { names: ['expect', 'tclsh', 'wish'], flags: /^-[a-z]*c$/, isWord: true },
  {
    names: ['awk', 'gawk', 'mawk', 'nawk', 'original-awk'],
    flags: /^(?:-[fileE]|--(?:source|file|include|load|exec))$/,
    operands: FIRST,
    takes: /^(?:-[Fvfile]|--(?:field-separator|assign|source|file|include|load))$/,
    instead: /^(?:-[feE]|--(?:source|file|exec))/,
  },
  {
    names: ['sed', 'gsed', 'ssed'],
    flags: /^(?:-[A-Za-z]*[ef]|--expression|--file)$/,
    operands: FIRST,
    takes: /^(?:-[A-Za-z]*[efl]|--(?:expression|file|line-length))$/,
    instead: /^(?:-[A-Za-z]*[ef]|--expression|--file)/,
  },
  { names: ['m4', 'dc', 'ed', 'red'], isAll: true },
  {
    names: ['vi', 'vim', 'vim.basic', 'vim.tiny', 'nvim', 'gvim', 'vimdiff'],
    flags: /^(?:-[A-Za-z]*[cSsuU]|--cmd|-l)$/,
    glued: /^\+/,
  },
  { names: ['view', 'ex'], flags: /^(?:-[A-Za-z]*[cSsuU]|--cmd)$/, glued: /^\+/, isWord: true },
  {
    names: ['emacs', 'emacsclient'],
    flags: /^(?:-[elf]|--?(?:eval|execute|load|funcall|script|batch))$/,
  },
  { names: ['less', 'more', 'most'], glued: /^\+/, flags: /^(?:-k|--lesskey.*)$/, isWord: true },
  { names: ['man'], flags: /^(?:-[PH]|--(?:pager|html))$/, isWord: true },
  {
    names: ['gdb', 'cgdb'],
    flags: /^--?(?:ex|eval-command|iex|init-eval-command|x|command|ix|init-command)$/,
  },
  { names: ['lldb'], flags: /^(?:-[oOsSkK]|--(?:one-line|source)(?:-.*)?)$/ },
  { names: ['sqlite3', 'sqlite'], flags: /^--?(?:cmd|init)$/, operands: { from: 1, to: LAST } },
  {
    names: ['psql', 'mysql', 'mariadb', 'mongosh'],
    flags: /^(?:-[A-Za-z]*[cevf]|--(?:command|execute|eval|variable|file))$/,
  },

  // What runs other commands.
  {
    wraps: true,
    names: ['env'],
    flags: /^(?:-[A-Za-z]*S|--split-string)$/,
    operands: FIRST,
    takes: /^(?:-[uCP]|--(?:unset|chdir))$/,
    assigns: ASSIGNMENT,
  },
  {
    wraps: true,
    names: ['sudo', 'doas'],
    operands: FIRST,
    takes: /^-[AaCcDghpRrTtUu]$/,
    assigns: ASSIGNMENT,
  },
  {
    wraps: true,
    names: ['nice', 'ionice', 'chrt'],
    operands: FIRST,
    takes: /^(?:-[ncp]|--(?:adjustment|class|classdata))$/,
  },
  {
    wraps: true,
    names: ['nohup', 'setsid', 'stdbuf', 'time', 'unshare', 'nsenter', 'fakeroot', 'unbuffer', 'rlwrap'],
    operands: FIRST,
    takes: /^(?:-[ioefwt]|--(?:input|output|error|format))$/,
  },
  {
    wraps: true,
    names: ['strace', 'ltrace', 'setpriv', 'systemd-run', 'dbus-run-session', 'xvfb-run', 'eatmydata'],
    operands: FIRST,
    takes: /^-[eopsuPEn]$/,
  },
  { wraps: true, names: ['busybox', 'toybox'], operands: FIRST },
  { names: ['npx', 'bunx', 'uvx', 'pnpx'], operands: FIRST, flags: /^(?:-[cp]|--(?:call|package|from))$/ },
  { names: ['npm', 'pnpm', 'yarn'], flags: /^(?:exec|x|dlx|-c|--call)$/ },
  { names: ['pipx', 'uv'], flags: /^(?:run|tool)$/ },
  { wraps: true, names: ['timeout'], operands: SECOND, takes: /^(?:-[ks]|--(?:kill-after|signal))$/ },
  { wraps: true, names: ['taskset', 'chroot'], operands: SECOND },
  {
    wraps: true,
    names: ['flock'],
    flags: /^(?:-[A-Za-z]*c|--command)$/,
    operands: SECOND,
    takes: /^(?:-[wE]|--(?:timeout|conflict-exit-code))$/,
  },
  {
    wraps: true,
    names: ['watch'],
    operands: { from: 0, to: LAST },
    takes: /^(?:-[nq]|--(?:interval|equexit))$/,
  },
  {
    wraps: true,
    names: ['entr', 'watchexec', 'nodemon'],
    operands: { from: 0, to: LAST },
    flags: /^(?:-[sx]|--(?:exec|shell))$/,
  },
  {
    wraps: true,
    names: ['xargs'],
    operands: FIRST,
    takes: /^(?:-[aEdILnPs]|--(?:arg-file|delimiter|replace|max-.*))$/,
  },
  { names: ['parallel', 'sem'], isAll: true },
  { wraps: true, names: ['find', 'gfind'], flags: /^-(?:exec|execdir|ok|okdir)$/ },
  { wraps: true, names: ['fd', 'fdfind'], flags: /^(?:-[xX]|--exec(?:-batch)?)$/ },
  { names: ['tmux', 'screen', 'byobu', 'dtach', 'abduco'], isAll: true },
  { wraps: true, names: ['xterm', 'start-stop-daemon'], flags: /^(?:-e|-[ax]|--exec|--startas)$/ },
  { names: ['socat'], isAll: true },
  { names: ['nc', 'ncat', 'netcat', 'nc.traditional'], flags: /^(?:-[A-Za-z]*[ec]|--(?:sh-|lua-)?exec)$/ },
  {
    names: ['ssh', 'rsh', 'slogin', 'autossh', 'mosh'],
    flags: /^(?:-o|-F|--ssh|--server)$/,
    glued: /^-[oF]/,
    operands: { from: 1, to: LAST },
    takes: /^-[BbcDEeFIiJLlmOopQRSWw]$/,
  },
  { names: ['scp', 'sftp'], flags: /^-[oFSD]$/, glued: /^-[oFSD]/ },
  { names: ['rsync'], flags: /^(?:-[A-Za-z]*e|--rsh|--rsync-path)$/ },

  // What reads its own settings from arguments, and runs what they say.
  {
    names: ['git'],
    flags:
      /^(?:-c|--config|--config-env|--exec-path|--upload-pack|-u|--receive-pack|--exec|-x|-O|--open-files-in-pager|--extcmd|run|foreach|--(?:tree|index|msg|env|commit|parent|tag-name)-filter)$/,
  },
  {
    names: ['hg', 'svn'],
    flags: /^--(?:config|config-option|editor-cmd|diff3?-cmd|merge-cmd|ssh|remotecmd)$/,
  },
  {
    names: ['tar', 'gtar', 'bsdtar'],
    flags:
      /^(?:-[A-Za-z]*[IF]|--(?:to-command|checkpoint-action|use-compress-program|info-script|new-volume-script|rsh-command|rmt-command))$/,
  },
  { names: ['zip'], flags: /^(?:-TT|--unzip-command)$/ },
  { names: ['wget'], flags: /^(?:-e|--execute|--use-askpass)$/ },
  {
    names: ['apt', 'apt-get', 'aptitude', 'dpkg'],
    flags: /^(?:-o|--option|--pre-invoke|--post-invoke)$/,
    glued: /^-o/,
  },
  {
    names: ['make', 'gmake', 'bmake'],
    flags: /^(?:-[A-Za-z]*[fE]|--(?:eval|file|makefile))$/,
    assigns: ASSIGNMENT,
  },
  { names: ['cmake'], flags: /^-[PC]$/ },
]
