const user = location.pathname.split("/")[2];
const answer = await fetch(`/users/${user}`);
document.body.append(JSON.stringify(await answer.json()));
