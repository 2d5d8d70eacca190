// The driver's questions. Answers are strings: they cross into another world.
// A new step begins: what is open now is not its doing.
commands.begin = () => { step++; link = 0; told.clear(); return ''; };

// The page's open work: requests of this step, other requests, ms to the last timer
// that counts, callbacks waiting for a frame, whether observers wait for frames.
commands.state = () => {
  told.clear();
  const [mine, others, names, soft] = count();
  return `${mine} ${others} ${nextTimer()} ${frames.size} ${observed ? 1 : 0} ${soft}\n${names}`;
};

// Answers "idle" now, or when the step's last request has ended.
commands.idle = () => {
  if (count()[0] === 0) return 'idle';
  waiting = true;
  return 'wait';
};

// The driver waits no longer: what is open is taken for a stream, and bodies go to the
// page as they come.
commands.release = () => {
  waiting = false;
  requests.forEach((r) => { if (r.step === step) r.stream = true; });
  held.forEach((give) => give());
  tell('stream');
  return '';
};
