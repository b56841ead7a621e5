// Answers the requests of Next.js for web fonts, so that a build needs no other server: every font is one of the system.

const FONT = "@font-face { font-family: 'Inter'; font-weight: 100 900; src: local('sans-serif') }";

module.exports = new Proxy({}, { get: (_, url) => (String(url).startsWith("http") ? FONT : undefined) });
