"""A Django site in one file: models, migrations of the admin's, templates, the test client."""
import sys

import django
from django.conf import settings

settings.configure(
    DEBUG=False, SECRET_KEY="not one", ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes"],
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}])
django.setup()

from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpResponse
from django.template import engines
from django.test import Client
from django.urls import path


def index(request, count):
    template = engines["django"].from_string("{% for u in users %}{{ u.username }},{% endfor %}")
    return HttpResponse(template.render({"users": User.objects.order_by("username")[:count]}))


urlpatterns = [path("users/<int:count>", index)]

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    for n in range(50):
        User.objects.create(username=f"user{n:03}")
    client = Client()
    for count in (1, 10, 50):
        response = client.get(f"/users/{count}")
        print(response.status_code, response.content.decode())
    print(client.get("/nowhere").status_code)
    sys.exit(3)
